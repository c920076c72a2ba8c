#include "tests/source_dir.hpp"

namespace shardwise {

const std::string& source_dir() {
  static const std::string path = SHARDWISE_SOURCE_DIR;
  return path;
}

}  // namespace shardwise
