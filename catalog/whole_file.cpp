#include "catalog/whole_file.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace shardwise {

Problems write_whole_file(const std::string& path,
                          const std::function<void(std::ostream&)>& write) {
  const auto failed = [&](const std::string& why) {
    return Problems{{ProblemKind::file, path, std::string("cannot be written: ").append(why)}};
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return failed("it is a folder");
  // The process number keeps two runs that write the same file apart.
  const std::string temporary =
      std::string(path).append(".").append(std::to_string(getpid())).append(".part");
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  if (!file) return failed("its folder does not exist or does not allow it");
  write(file);
  file.close();
  if (!file) {
    std::filesystem::remove(temporary, error);
    return failed("the disk is full or failed");
  }
  std::filesystem::rename(temporary, path, error);
  if (!error) return {};
  const std::string why = error.message();
  std::filesystem::remove(temporary, error);
  return failed(why);
}

}  // namespace shardwise
