// Reading a file that another tool wrote, whichever tool that was.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/imported_log.hpp"
#include "calibrate/kernel_class.hpp"
#include "catalog/result.hpp"

namespace shardwise {

// `file` is how answers call it. A text of no format that we know has an empty `format` and no
// measurements, which is no error: the caller says so.
ImportedLog import_log(std::string file, std::string_view text,
                       const std::vector<KernelClass>& classes);

// The same for a file on disk, of at most 2 GiB. Problems{file} where it cannot be read.
Result<ImportedLog> import_file(const std::string& path, const std::vector<KernelClass>& classes);

// "nccl-tests, nccl-tests JSON, ...": what import_log knows.
std::string known_log_formats();

}  // namespace shardwise
