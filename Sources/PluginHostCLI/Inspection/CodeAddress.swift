internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginFile

/// The address of an instruction: a file, and the address in it.
struct CodeAddress: Hashable, Sendable {
    let file: String
    /// The address of the instruction in the file.
    let offset: UInt64

    init(file: String, offset: UInt64) { (self.file, self.offset) = (file, offset) }

    /// Reads a line of the report of a fatal signal: `address OFFSET PATH`.
    init?(line: some StringProtocol) {
        let words = line.split(separator: " ", maxSplits: 2)
        guard words.count == 3, words[0] == "address", let offset = UInt64(words[1], radix: 16) else { return nil }
        self.init(file: String(words[2]), offset: offset)
    }

    var record: Value { ["file": .string(file), "offset": .int(Int(truncatingIfNeeded: offset))] }

    init?(_ record: Value?) {
        guard let file = record?["file"]?.string, let offset = record?["offset"]?.int else { return nil }
        self.init(file: file, offset: UInt64(truncatingIfNeeded: offset))
    }
}

/// The location of an address, according to the symbols of its file.
struct CodeLocation: Hashable, Sendable {
    let address: CodeAddress
    /// The function; `nil` if the file has no symbol for it.
    var function: String? = nil
    /// The source file and the line; `nil` if the file has no debug information for it.
    var source: Source? = nil

    struct Source: Hashable, Sendable {
        let file: String
        let line: Int
    }

    /// Whether the code is that of `PluginABI`, which is a part of each module in Swift.
    var isOfInterface = false

    /// `buy (/src/shop.c:12)`, `buy (libshop.so+0x10f9)` or `libshop.so+0x10f9`. A name that is longer than a line,
    /// like those of closures in Swift, is left out if the line of the source is known.
    var description: String {
        let library = address.file.split(separator: "/").last.map(String.init) ?? address.file
        let position =
            source.map { "\($0.file):\($0.line)" } ?? "\(library)+0x\(String(address.offset, radix: 16))"
        guard let function, source == nil || function.count <= 80 else { return position }
        return "\(function) (\(position))"
    }

    var record: Value {
        .entries([
            "function": function.map(Value.string), "file": source.map { .string($0.file) },
            "line": source.map { .int($0.line) }, "offset": .int(Int(truncatingIfNeeded: address.offset)),
        ])
    }
}

/// Finds functions, source files and lines with `addr2line` or `llvm-symbolizer`, if one of them is installed.
struct Symbolizer: Sendable {
    /// How long the tool may take, for all addresses.
    static let deadline = Duration.seconds(5)
    /// The absolute path of the tool; `nil` if there is none.
    var tool = Self.installed

    private static let installed: String? = {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let folders = path.split(separator: ":").filter { $0.hasPrefix("/") }
        return ["addr2line", "llvm-symbolizer"].lazy
            .flatMap { name in folders.lazy.map { "\($0)/\(name)" } }.first { access($0, X_OK) == 0 }
    }()

    /// Returns the locations of addresses, in their order.
    func locations(of addresses: [CodeAddress]) -> [CodeLocation] {
        let end = ContinuousClock.now + Self.deadline
        var known: [CodeAddress: CodeLocation] = [:]
        for (file, addresses) in Dictionary(grouping: addresses, by: \.file) {
            for (address, lines) in zip(addresses, pairs(file, addresses, until: end)) {
                let source = Self.source(lines.position)
                known[address] = CodeLocation(
                    address: address,
                    function: namesNearest && source == nil ? nil : Self.function(lines.function), source: source,
                    isOfInterface: source?.file.contains("/Sources/PluginABI/") == true
                        || lines.function.hasPrefix("$s9PluginABI"))
            }
        }
        return addresses.map { known[$0] ?? CodeLocation(address: $0) }
    }

    /// Returns the location that says most about a crash: that of the innermost function on the stack that has a line
    /// and is not part of `PluginABI`. After a runtime error in Swift, such functions may have no line; then it is that
    /// of the innermost one that has a name.
    func location(ofCrash stack: [CodeAddress]) -> CodeLocation? {
        let locations = locations(of: stack)
        let own = locations.filter { !$0.isOfInterface }
        return own.first { $0.source != nil } ?? own.first { $0.function != nil }
            ?? locations.first { $0.source != nil } ?? locations.first
    }

    /// Whether the tool names the nearest function that it knows, however far away, if it does not know the right one.
    private var namesNearest: Bool { tool?.hasSuffix("/llvm-symbolizer") == true }

    /// Runs the tool for addresses in one file. It prints two lines for each address.
    private func pairs(
        _ file: String, _ addresses: [CodeAddress], until end: ContinuousClock.Instant
    ) -> [(function: String, position: String)] {
        guard let tool, end > .now else { return [] }
        let style = namesNearest ? ["--output-style=GNU", "--no-inlines"] : []
        let offsets = addresses.map { "0x" + String($0.offset, radix: 16) }
        // Its output goes to the descriptor of the report.
        let script = "exec \"$@\" >&\(ChildProcess.reportDescriptor) 2>/dev/null"
        let words = ["sh", "-c", script, "sh", tool] + style + ["-f", "-C", "-e", file] + offsets
        guard let child = try? ChildProcess(executable: "/bin/sh", arguments: words) else { return [] }
        let (bytes, ending) = child.collect(deadline: end - .now)
        guard ending == .exited(0) else { return [] }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        return stride(from: 0, to: lines.count - 1, by: 2).map { (String(lines[$0]), String(lines[$0 + 1])) }
    }

    private static func function(_ line: String) -> String? {
        line.isEmpty || line.hasPrefix("??") ? nil : demangled(line)
    }

    /// Reads `/src/shop.c:12` or `/src/shop.c:12 (discriminator 1)`.
    private static func source(_ line: String) -> CodeLocation.Source? {
        let text = line.split(separator: " (discriminator").first ?? ""
        guard let colon = text.lastIndex(of: ":"), let number = Int(text[text.index(after: colon)...]), number > 0,
            case let file = text[..<colon], !file.hasSuffix("<compiler-generated>"), !file.hasPrefix("??")
        else { return nil }
        return CodeLocation.Source(file: String(file), line: number)
    }

    private typealias Demangle =
        @convention(c) (
            UnsafePointer<CChar>, Int, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<Int>?, UInt32
        ) -> UnsafeMutablePointer<CChar>?

    /// Returns the name of a Swift function as it is written in source code.
    private static func demangled(_ name: String) -> String {
        guard name.hasPrefix("$s"), let function = dlsym(nil, "swift_demangle"),
            let text = unsafeBitCast(function, to: Demangle.self)(name, name.utf8.count, nil, nil, 0)
        else { return name }
        defer { free(text) }
        return String(cString: text)
    }
}

extension Symbolizer {
    /// Returns names of exported symbols of a file, each with its source file and line if these are known.
    func located(_ names: [String], in file: String) -> [String] {
        let exports = FileManager.default.contents(atPath: file).flatMap { data in
            data.withUnsafeBytes { bytes in try? ELFImage.exports(of: bytes, path: file) }
        }
        let addresses = names.map { CodeAddress(file: file, offset: exports?.addresses[$0] ?? 0) }
        return zip(names, locations(of: addresses)).map { name, location in
            location.source.map { "\(name) (\($0.file):\($0.line))" } ?? name
        }
    }
}
