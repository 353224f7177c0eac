"""The words by which failures are classed: data only, lower-case substrings of an output's telling lines (see failures.py)."""

from __future__ import annotations

# In order of precedence.
MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("command-not-found", (
        "command not found", "is not recognized as a", "executable file not found", "exec format error",
    )),
    ("missing-dependency", (
        "modulenotfounderror", "no module named", "cannot find module", "cannot find package",
        "no required module provides", "err_module_not_found", "module not found", "can't resolve '", "could not find gem",
        "can't find crate", "missing go.sum entry", "cannot find -l", ".h: no such file", ".hpp: no such file",
        ".h' file not found", "cannot open shared object", "could not resolve dependency", "not installed",
        "is not in std", "no matching distribution", "run `npm install`", "run npm install", "failed to resolve import",
        "classnotfoundexception", "noclassdeffounderror", "cannot load such file",
        "version solving failed", "no solution found when resolving",
        "resolved to an installable set", "bundler could not find compatible",
        "in locally installed gems", "is not yet checked out", "could not find package", "vendor/autoload.php",
        "could not find a package configuration file", 'could not find module "find', "could not find (missing:",
        "could not resolve dependencies for", "could not find artifact", "unable to find package", "error nu110",
        "could not resolve all", "no such module", "module not installed", "required plugins are not installed",
        "backend initialization required", "inconsistent dependency lock", "provider requirements cannot be satisfied",
        "mix deps.get", "unchecked dependencies", "couldn't resolve the package", "no such package",
        "is not in your go.mod", "importerror: cannot import", "could not find a version", "missing peer",
    )),
    ("lock", (
        "index.lock", "could not get lock", "database is locked", "resource temporarily unavailable", "eaddrinuse",
        "address already in use", "port is already allocated", "another process", "waiting for file lock",
        "text file busy", "is already in use by container", "timeout waiting to lock", "another instance of",
        "dpkg frontend lock", "lock file held by", "unable to lock", "could not lock", "state lock", "already running",
        "is locked by", "another git process", "still in progress", "is not complete yet", "try again later", "retry later",
    )),
    ("timeout", (
        "timed out after", "execution timed out", "deadline exceeded", "timeoutexpired", "operation timed out",
        "command timed out", "timed out waiting", "exceeded its progress deadline",
    )),
    ("protected-resource", (
        "protected branch", "read-only file system", "gh006", "gh013", "hook declined", "is protected", "refusing to",
        "repository rule violations", "blocked by policy", "sandbox", "not allowed by", "pre-commit hook", "is archived",
    )),
    ("network", (
        "could not resolve host", "connection refused", "connection reset", "network is unreachable", "name resolution",
        "enotfound", "econnrefused", "econnreset", "etimedout", "getaddrinfo", "tls handshake", "502 bad gateway",
        "503 service", "rate limit", "http 429", "429 too many", "i/o timeout", "no route to host", "self_signed_cert",
        "certificate verify failed", "x509:", "unable to connect to the server", "transfer failed",
        "could not transfer artifact", "unable to load the service index", "temporary failure in name",
        "couldn't connect to server", "failed to connect", "connection timed out", "socket hang up",
        "could not connect to", "the remote end hung up", "fetch failed", "no such host", "server is temporarily",
        "cannot connect to the docker daemon",
    )),
    ("auth", (
        "pull access denied", "no basic auth credentials", "(forbidden)", "(unauthorized)",
        "security token included in the request", "expiredtoken", "unable to locate credentials",
        "could not find default credentials", "az login", "reauthentication", "permission denied", "eacces",
        "access denied", "accessdenied", "unauthorized", "http 401", "status 401", "403 forbidden", "http 403",
        "authentication failed", "could not read username", "credential", "not logged in", "login required", "log in",
        "invalid token", "expired token", "token has expired", "bad credentials", "auth login", "publickey",
        "operation not permitted", "eperm", "permissionerror", "not authenticated", "requires authentication", "forbidden",
        "must be authenticated", "401 unauthorized", "need auth", "be logged in", "active account", "required scopes",
        "sso token", "sso session", "returned error: 401", "returned error: 403", " denied to ",
        "gh_token environment variable", "requested access to the resource is denied",
    )),
    ("resource", (
        "no space left", "out of memory", "heap out of memory", "cannot allocate memory", "oomkilled",
        "too many open files", "disk quota", "quota exceeded", "memoryerror", "enospc", "emfile", "argument list too long",
        "signal: killed",
    )),
)  # fmt: skip
# Marks that count only where no letter stands before them.
ERRNO = ("eaddrinuse", "enotfound", "econnrefused", "econnreset", "etimedout", "eacces", "eperm", "enospc", "emfile")
# The tool that ran is of another version than the project asks for, or what it is built on is not there.
TOOLCHAIN = (
    "unsupported engine", "unsupported environment", "unsupported_engine", "node version is incompatible",
    "node.js version", "requires node", "requires a different python", "requires python", "(running go ",
    "toolchain not available", "requires rustc", "java_home", "no 'java' command", "by a more recent version of the java",
    "invalid source release", "invalid target release", "does not support targeting", "requires php", "your php version",
    "your ruby version is", "required ruby version", "or higher is required. you are running", "requires bundler version",
    "netsdk1045", "unsupported terraform core version", "requires xcode", "executable doesn't exist at",
    "shared libraries", "dyld: ", "error: release version", "unsupported class file major",
)  # fmt: skip
# Said about the command line itself, whatever the program is for.
MISUSED = (
    "unrecognized subcommand", "unknown command", "unknown flag", "unknown option", "unrecognized option",
    "unrecognized argument", "no such option", "missing script", "script not found", "no such command",
    "unexpected argument", "flag provided but not defined", "no tasks defined", "unknown goal", "unknown lifecycle phase",
    "could not open input file", "there are no commands defined", "don't know how to build task", "unknown target",
    "no such subcommand", "the specified command or file was not found", "msb1003", "msb1009", "no test matches",
    "input device is not a tty", "doesn't have a resource type", "has no subcommand", "unknown action",
    "invalid subcommand", "is not a recognized option", "unknown shorthand", "unknown subcommand", "is not a git command",
    "invalid choice", "unknown json field", "' not found in root project", '" is not defined.', "not found in project '",
)  # fmt: skip
# Said by tools that are not programs about the arguments they got.
MISCALLED = (
    "not found", "validation", "exceeds maximum", "eisdir", "status code 404", "non-uuid", "not a prompt-based",
    "required",
)  # fmt: skip
# Said by a server about the arguments of a call. What it does not find (an element, a table) may be there at another time.
MISARGUED = (
    "validation error", "validation failed", "invalid argument", "invalid param", "invalid input", "-32602", "-32601",
    "unknown tool", "unknown argument", "unexpected argument", "unexpected keyword", "unrecognized key", "required property",
    "required parameter", "required argument", "missing required", "field required", "additional properties",
    "exceeds maximum", "non-uuid",
)  # fmt: skip
# Said about the command line or about what it names, by programs that are not the project's own.
USAGE = (
    "usage:", "unknown option", "unrecognized", "unrecognised", "unknown command", "invalid option", "illegal option",
    "unknown flag", "no such option", "unexpected argument", "missing script", "script not found",
    "no rule to make target", "no such command", "is not a git command", "invalid choice", "required argument",
    "unknown shorthand", "no matches found", "syntax error near", "parse error near", "unexpected eof while looking",
    "unknown argument", "invalid argument", "too many arguments", "unknown subcommand", "is not a known",
    "no such file or directory", "does not exist", "cannot access", "pathspec", "unknown revision", "not a git repository",
    "no such task", "no task ", "unexpected option", "flag provided but not defined", "flag needs an argument", "accepts ",
    "requires at least", "no upstream", "missing required", "bad revision", "not a valid", "can't find session",
    "unknown json field", "must be specified", "invalid reference", "unmatched", "event not found", "not a directory",
    "is a directory", "ambiguous argument", "expected one of", "unterminated", "unknown skill", "inputvalidationerror",
    "invalid tool parameters", "error: no such", "could not find", "needed a single revision", "couldn't find",
    "no configuration file", "specify a command", "bad substitution", "missing argument", "invalid value",
    "no match found", "e404", "http 404", "not found in upstream", "matched no packages", "file not found",
    "bad pattern", "no such service", "no such container", "invalid command code", "no available formula",
    "externally-managed-environment",
)  # fmt: skip
# Said of an edit that does not fit the file, by the edit tools of the harnesses.
EDIT_MISMATCH = (
    "not found in file", "not been read", "modified since", "unexpectedly modified", "matches of the string",
    "verification failed", "expected lines", "old_string", "no changes to make", "are exactly the same", "did not appear",
    "no replacement", "multiple occurrences", "failed to find", "does not match", "new syntax error", "string to replace",
    "hunk", "patch failed", "patch does not apply", "could not find", "not found in", "must match exactly",
    "invalid patch", "0 occurrences", "appears more than once", "oldstring", "multiple matches", "search block",
    "you must read", "use the read tool first", "occurrence",
)  # fmt: skip
