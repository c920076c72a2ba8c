// whole_file: a file that is either written to its end or not there at all.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "catalog/result.hpp"

namespace shardwise {

// Writes to a temporary name beside `path`, or beside what a link there leads to, then renames;
// into a device or a pipe as it stands. Problems{file} where the folder or the disk does not allow
// it; what stood at `path` is then as it was.
Problems write_whole_file(const std::string& path, const std::function<void(std::ostream&)>& write);

// What can be seen of it before there is anything to write, for answers that take minutes: that
// `path` is a folder, or has none to lie in.
Problems unwritable(const std::string& path);

}  // namespace shardwise
