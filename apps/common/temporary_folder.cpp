#include "temporary_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <system_error>

#include <xgrad/base/detail/system/folder_names.hpp>
#include <xgrad/base/error.hpp>

namespace apps {

TemporaryFolder::TemporaryFolder(const std::string& parent) : path_(parent + "/.xgrad-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr)
    throw xgrad::FileError(parent + ": cannot be written: " + std::system_category().message(errno));
}

TemporaryFolder::~TemporaryFolder() { xgrad::detail::remove_folder(path_.c_str()); }

}  // namespace apps
