// What is written from the table of orders is what it was written from: the orders that
// docs/schema/simulate.json knows. `./dev readings` writes them anew.
#include <doctest/doctest.h>

#include <string>

#include "berth/queue/schedule.h"
#include "berth/view/json.h"
#include "berth/view/test/written.h"

namespace berth::view::orders_document_test {
namespace {

std::string schema_with_orders(const std::string& text) {
  Json schema = Json::parse(text);
  Json& order = schema.at("properties").at("policies").at("items").at("properties").at("order");
  order.at("description") = "whose turn it is first: " + orders_in_words();
  order.at("enum") = Json::array();
  for (const OrderRow& row : order_rows()) order["enum"].push_back(row.name);
  return schema.dump(2) + "\n";
}

TEST_CASE("what is written from the table of orders is as the table says") {
  const std::string path = "/docs/schema/simulate.json";
  test::check_written(path, schema_with_orders(test::text_of_file(path)));
}

}  // namespace
}  // namespace berth::view::orders_document_test
