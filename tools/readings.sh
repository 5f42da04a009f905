# shellcheck shell=bash

# Writes what is made from the tables of what is known of a device, of what a request can say and of
# the orders of the queue: src/core/device/device_readings.cpp,
# src/core/request/request_fields.cpp and src/core/queue/queue_order.cpp.
cmd_readings() {
  setup_to_build
  build release berth_view_test
  BERTH_WRITE_READINGS=1 build/release/berth_view_test --test-case='what is written from the table*' >/dev/null
  git status --short docs/readings.md docs/requests.md docs/manual.md docs/schema python/berth/_request_fields.py web/src/readings.ts
}
