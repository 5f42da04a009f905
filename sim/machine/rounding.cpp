// libstdc++ reads a float with the C library's strtod and turns the rounding mode to nearest and back around
// it, through two functions of libm. Loading libm for that takes every client 90 microseconds, a third of
// what the double costs in all; nobody who reads a scenario has another rounding mode.
extern "C" int fegetround() noexcept {
  return 0;
}
extern "C" int fesetround(int) noexcept {
  return 0;
}
