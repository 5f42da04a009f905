# shellcheck shell=bash

# Writes what is made from the table of what is known of a device: src/berth/device/device_readings.cpp.
cmd_readings() {
  setup_to_build
  build release berth_view_test
  BERTH_WRITE_READINGS=1 build/release/berth_view_test --test-case='what is written from the table*' >/dev/null
  git status --short docs/readings.md docs/schema/list.json web/src/readings.ts
}
