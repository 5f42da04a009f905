#include "nvml/abi.h"

namespace berth::sim {
namespace {

struct ErrorText {
  int code;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {5, "Already Initialized"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {8, "Insufficient External Power"},
    {9, "Driver Not Loaded"},
    {10, "Timeout"},
    {11, "Interrupt Request Issue"},
    {12, "NVML Shared Library Not Found"},
    {13, "Function Not Found"},
    {14, "Corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires reset"},
    {17, "GPU access blocked by the operating system"},
    {18, "Driver/library version mismatch"},
    {19, "In use by another client"},
    {20, "Insufficient Memory"},
    {21, "No data"},
    {22, "VGPU ECC not supported"},
    {23, "Insufficient Resources"},
    {24, "Frequency not supported"},
    {25, "Argument version mismatch"},
    {26, "Deprecated"},
    {27, "System is not ready"},
    {28, "No GPUs were found"},
    {29, "Invalid state"},
    {30, "Reset type is not supported"},
    {999, "Unknown Error"},
};

}  // namespace

const char* error_text(int code) {
  for (const ErrorText& error : kErrors)
    if (error.code == code) return error.text;
  return "Unknown Error";
}

}  // namespace berth::sim
