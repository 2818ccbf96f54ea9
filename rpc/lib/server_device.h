#ifndef WEIR_RPC_LIB_SERVER_DEVICE_H_
#define WEIR_RPC_LIB_SERVER_DEVICE_H_

#include <cstdint>
#include <string>

namespace weir::rpc {

// A device of a server, as it tells others.
struct ServerDevice {
  std::string name;          // "/job:worker/replica:0/task:0/device:CPU:0"
  std::string type;          // "CPU"
  std::string description;   // for people
  int64_t memory_limit = 0;  // in bytes
  // A random number, which tells this process from the one that ran before it.
  uint64_t incarnation = 0;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_SERVER_DEVICE_H_
