#pragma once

#include <functional>
#include <string>

namespace xgrad {

/// Writes files of a folder that belong together, all or none: write(other) writes them into another folder,
/// an empty one. Only when they are complete and on the disk, they become those of `folder`. If it is
/// missing, it is created with its parents; if it is there, files of the same names are replaced and keep
/// their permissions, and all others stay. If anything fails before, nothing has changed.
///
///     write_folder("model", [&](const std::string& folder) {
///       save_folder(model, folder);
///       tokenizer.save(folder);
///     });
///
/// Calls nest: in write(), a call for `other` is a part of the whole. Errors name the files in `folder`. A
/// link in the folder is replaced, not what it leads to.
///
/// However the process or the machine is stopped, the folder has the old files, or the new ones after a call
/// of complete_folder(), as all functions make that load. Others find no model while files are replaced:
/// config.json, or an ONNX file, is removed first and comes last. What a killed process has left is removed
/// by the next call.
///
/// Throws FileError if the folder or one of its files cannot be written, and what write() throws.
void write_folder(const std::string& folder, const std::function<void(const std::string&)>& write);

/// Replaces the files that write_folder() has written completely, but not yet replaced when its process was
/// stopped. To be called before several files of a folder are read. Throws FileError if they cannot be
/// replaced, as in a folder that may not be written.
void complete_folder(const std::string& folder);

}  // namespace xgrad
