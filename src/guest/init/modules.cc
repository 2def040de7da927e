// SPDX-License-Identifier: Apache-2.0
#include "guest/init/modules.h"

#include <string>

#include <sys/syscall.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"

namespace gb::init {

Status load_modules(const std::filesystem::path& folder) {
    GB_TRY_ASSIGN(std::string order, read_file(folder / "order"));
    for (std::size_t at = 0; at < order.size();) {
        std::size_t end = std::min(order.find('\n', at), order.size());
        std::string name = order.substr(at, end - at);
        at = end + 1;
        if (name.empty()) continue;
        GB_TRY_ASSIGN(UniqueFd fd, open_file(folder / name, O_RDONLY));
        if (::syscall(SYS_finit_module, fd.get(), "", 0) != 0 && errno != EEXIST)
            return fail_errno("load module " + name);
    }
    return {};
}

}  // namespace gb::init
