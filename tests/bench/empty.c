// The price of any process: the unit that bench/bare is measured in.
int main(void) {
  return 0;
}
