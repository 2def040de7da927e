# SPDX-License-Identifier: Apache-2.0
# Start-up file of R kernels: what the server asks for unseen, then IRkernel on the connection file that the command line
# names. The functions live in an option, out of the user's sight.

options(glovebox = local({
    before_sandbox <- list()
    before_call <- list()

    # Environment variables laid over what was there; returns what it takes to go back.
    lay <- function(before, variables) {
        for (name in names(before)) {
            if (is.na(before[[name]])) Sys.unsetenv(name) else do.call(Sys.setenv, before[name])
        }
        before <- list()
        for (name in names(variables)) {
            # No such name is possible in a process, or R cannot hold the value.
            tryCatch({
                was <- Sys.getenv(name, unset = NA)
                do.call(Sys.setenv, variables[name])
                before[[name]] <- was
            }, error = function(problem) message("environment variable ", name, " not set"))
        }
        before
    }
    parse <- function(text) as.list(jsonlite::fromJSON(text, simplifyVector = FALSE))
    reseed <- function() {
        # Fresh from the machine's own generator: clocks of two copies of one machine may agree.
        source <- file("/dev/urandom", "rb")
        on.exit(close(source))
        set.seed(readBin(source, "integer", 1))
    }

    list(
        enter_generation = function(text) {
            state <- parse(text)
            if (isTRUE(state$reseed)) reseed()
            before_sandbox <<- lay(before_sandbox, state$env)
            invisible(NULL)
        },
        set_call_env = function(text) {
            before_call <<- lay(before_call, parse(text))
            invisible(NULL)
        }
    )
}))

IRkernel::main()
