internal import PluginABI
internal import PluginHost

extension OptionSpecification {
    static let plugins = OptionSpecification(
        name: "--plugins", value: "dir", repeats: true,
        help:
            "A folder with modules; can be given more than once. Commands other than 'run' then load these modules "
            + "instead of asking a running host. (default: $PLUGINHOST_PATH, then ./plugins)")
    static let recursive = OptionSpecification(
        name: "--recursive", help: "Include the subfolders of the plugins folders.")
    static let trust = OptionSpecification(
        name: "--trust", help: "Also load files that other users could have written.")
    static let retry = OptionSpecification(
        name: "--retry", help: "Also load files whose modules were being started when a host died.")
    static let lazy = OptionSpecification(
        name: "--lazy",
        help:
            "Start a module only when it is first needed, if it is sealed or an earlier host has read it. What hosts learn "
            + "about files is kept in $XDG_CACHE_HOME/pluginhost. (default: all modules start with the host)")
    static let maxFileSize = OptionSpecification(
        name: "--max-file-size", value: "bytes",
        help: "The maximum size of a module together with the libraries beside it. (default: 268435456)")
    static let isolate = OptionSpecification(
        name: "--isolate", value: "module", repeats: true,
        help:
            "Run a module in a process of its own, in a sandbox, so that its crashes are errors of its calls; can be "
            + "given more than once. 'all' for all modules in the folders.")
    static let safeScan = OptionSpecification(
        name: "--safe-scan",
        help:
            "Open new and changed files in another process first, and do not load those that crash or hang there.")
    static let debugWorker = OptionSpecification(
        name: "--debug-worker", value: "module", repeats: true,
        help:
            "Like '--isolate', but the process waits for a debugger before it opens the file, and no deadline ends it; "
            + "can be given more than once.")
    static let config = OptionSpecification(
        name: "--config", value: "file",
        help:
            "A file with a JSON object of module configurations by module name, and with the rules for isolated "
            + "modules in the list 'isolation'. 'run' applies changes of the file, except those of the rules.")
    static let log = OptionSpecification(
        name: "--log", value: "form", choices: ["text", "json"],
        help: "The form of the log on standard error: 'text', or 'json' with an object on each line. (default: text)")
    static let jsonLog = OptionSpecification(
        name: "--json-log",
        help:
            "Write the log as JSON, like '--log json': objects with time, level, module, action, call and message. "
            + "'call' is a number, the same in all lines about one call.")
    static let logLevel = OptionSpecification(
        name: "--log-level", value: "level", choices: ["debug", "info", "warning", "error"],
        help: "The lowest level that is logged: debug, info, warning or error. (default: info for 'run', else warning)")
    static let scheme = OptionSpecification(
        name: "--scheme", value: "name", repeats: true,
        help:
            "A URL scheme whose URLs name target and action; can be given more than once. URLs and patterns without a "
            + "scheme have the first one. (default: app)")
    static let urlLength = OptionSpecification(
        name: "--url-length", value: "bytes",
        help: "The maximum length of a URL, 256 to 262144. (default: maximumURLLength in the configuration, else 16384)"
    )
    static let timeout = OptionSpecification(
        name: "--timeout", value: "seconds", help: "The timeout in seconds, more than 0.")
    static let method = OptionSpecification(
        name: "--method", value: "method", choices: RouteMethod.allCases.map(\.rawValue),
        help:
            "The HTTP method with which the URL is opened: GET, POST, PUT, PATCH or DELETE. Routes of other methods do "
            + "not answer. (default: GET)")
    static let ofService = OptionSpecification(
        name: "--service", help: "The first argument is the name of a service, and its implementation is called.")
    static let ofObject = OptionSpecification(
        name: "--object",
        help: "The first argument is an object that a call has returned: the number after \"object\". A running host "
            + "keeps the objects that it has shown; see 'release'.")
    static let json = OptionSpecification(name: "--json", help: "Print JSON, for programs.")
    static let attach = OptionSpecification(
        name: "--attach", value: "path",
        help:
            "Use the running host that listens on this socket. (default, unless '--plugins' or another option of a host "
            + "is given, or PLUGINHOST_PATH is set: the host on $PLUGINHOST_SOCKET or "
            + "$XDG_RUNTIME_DIR/pluginhost.sock, if there is one; it must answer within 5 s)")

    /// The options that configure a host of the command's own.
    static let hosting: [OptionSpecification] = [
        .plugins, .recursive, .trust, .retry, .isolate, .safeScan, .lazy, .maxFileSize, .config, .scheme, .urlLength,
        .log,
        .logLevel,
    ]
}

extension ParsedArguments {
    /// The seconds of `--timeout`.
    var timeout: Duration? {
        get throws(PluginError) { try duration(of: .timeout) }
    }

    /// The bytes of `--url-length`.
    var urlLength: Int? {
        get throws(PluginError) { try wholeNumber(of: .urlLength, "bytes", in: 256...262_144) }
    }

    /// Returns the plugins folders: those given, or those of the environment, or `./plugins`.
    func folders(environment: [String: String]) throws(PluginError) -> [String] {
        let given = values(of: .plugins)
        if !given.isEmpty { return given }
        let path = environment["PLUGINHOST_PATH", default: ""].split(separator: ":").map(String.init)
        for folder in path { try ArgumentParser.checkPath(folder, "path", "PLUGINHOST_PATH") }
        return path.isEmpty ? ["./plugins"] : path
    }

    /// The modules of `--isolate`.
    var isolatedModules: Isolation.Modules {
        let names = Set(values(of: .isolate))
        if names.contains("all") { return .all }
        return names.isEmpty ? .none : .named(names)
    }

    /// The URL schemes in lower case, in the order in which they are given; `nil` if none is given.
    var schemes: [String]? {
        get throws(PluginError) {
            guard has(.scheme) else { return nil }
            for scheme in values(of: .scheme) where !Self.isURLScheme(scheme) {
                throw .usage(
                    "'\(scheme.shortened)' is not a URL scheme: use a letter, then letters, digits, '+', '-' or '.'.")
            }
            return values(of: .scheme).map { $0.lowercased() }
        }
    }

    /// Returns whether a text is a URL scheme as defined by RFC 3986.
    private static func isURLScheme(_ text: String) -> Bool {
        text.first?.isPlainLetter == true
            && text.allSatisfy { $0.isPlainLetter || $0.isPlainDigit || "+-.".contains($0) }
    }
}

extension Duration {
    /// Makes a timeout; `nil` if `seconds` is not a positive number, or is more than thirty years.
    init?(timeout seconds: Double) {
        guard seconds > 0, seconds < 1e9 else { return nil }
        self = .seconds(seconds)
    }
}

extension [String: Value] {
    /// Adds the method of a URL if it is given. Hosts of older versions do not know methods.
    func withMethod(of arguments: ParsedArguments) -> [String: Value] {
        var fields = self
        fields["method"] = arguments.value(of: .method).map { .string($0) }
        return fields
    }

    /// Returns the entries with the timeout of `--timeout` added, if it was given.
    func withTimeout(of arguments: ParsedArguments) throws(PluginError) -> [String: Value] {
        var fields = self
        fields["timeout"] = try arguments.timeout.map { .double($0 / .seconds(1)) }
        return fields
    }
}
