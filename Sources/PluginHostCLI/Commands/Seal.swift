internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// `pluginhost seal FILE…`
enum Seal: Command {
    static let specification = CommandSpecification(
        name: "seal",
        overview: "Add the manifests of modules to their files, so that they can be read without running code.",
        discussion:
            "This opens each module in a process of its own, asks it for its manifest and its types, and appends a "
            + "section with both. (PLUGIN_MANIFEST_FILE and manifest_file! do so when a module in C, C++ or Rust is "
            + "compiled.) The rest of the file stays as it is. Each file is replaced in one step, unless it has this "
            + "seal already, and keeps its owner, group and permissions; a file with several hard links is refused. A "
            + "host refuses a module whose seal does not match its code.",
        arguments: [
            ArgumentSpecification(name: "file", repeats: true, kind: .file, help: "The shared library.")
        ],
        options: [
            .trust,
            OptionSpecification(
                name: "--timeout", value: "seconds",
                help: "How long the code of each file may take. (default: 10)"),
        ])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        for file in invocation.arguments.positionals {
            let isNew = try seal(file, invocation.arguments)
            invocation.console.print("\(file) \(isNew ? "is sealed." : "was sealed already.")".printable)
        }
    }

    /// Seals a file. Returns false if it was already sealed.
    private static func seal(_ file: String, _ arguments: ParsedArguments) throws(PluginError) -> Bool {
        let deadline = try arguments.timeout ?? Inspection.defaultDeadline
        // A link stays a link.
        guard
            let path = realpath(file, nil).map({ pointer in
                defer { free(pointer) }
                return String(cString: pointer)
            })
        else {
            throw PluginError(.fileNotFound, "There is no file \(file.shortened).")
        }
        let before = fileStatus(path)
        if let before, before.st_nlink > 1 {
            throw PluginError(
                .refused,
                "\(file) has \(before.st_nlink) hard links, and only one of them would be sealed. Copy the file, and seal "
                    + "the copy.")
        }
        guard
            let seal = try PluginHost.sealContent(
                of: path, trustsEveryone: arguments.has(.trust), timeout: deadline)
        else {
            throw PluginError(
                .inspectionCrashed,
                "\(file) cannot be sealed: its code crashes, hangs, or needs symbols of the program. 'pluginhost check' "
                    + "says more. The program pluginhost-worker must be installed beside this one.")
        }
        let old: [UInt8]
        do { old = try Array(Data(contentsOf: URL(filePath: path))) } catch {
            throw PluginError(.unreadable, "\(file) cannot be read: \(CocoaError.text(error))")
        }
        let new = try old.span.withUnsafeBytes { bytes throws(PluginError) in
            try SealWriter.sealed(bytes, with: seal, path: file)
        }
        guard new != old else { return false }
        try replace(path, by: new, before)
        return true
    }

    /// Replaces a file, in one step, with one that has the same owner, group and permissions.
    ///
    /// - Parameter before: The status of the file when it was read.
    private static func replace(_ path: String, by bytes: [UInt8], _ before: stat?) throws(PluginError) {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let folder = URL(filePath: path).deletingLastPathComponent()
        let temporary = folder.appending(path: ".\(name).\(UUID().uuidString)").path
        defer { unlink(temporary) }
        do {
            try Data(bytes).write(to: URL(filePath: temporary), options: .withoutOverwriting)
        } catch {
            throw PluginError(.cannotCreate, "\(path) cannot be replaced: \(CocoaError.text(error))")
        }
        guard let before, let now = fileStatus(path), FileIdentity(before) == FileIdentity(now) else {
            throw PluginError(.conflict, "\(path) was changed while it was being sealed. Seal it again.")
        }
        func failed(_ what: String) -> PluginError {
            PluginError(.cannotCreate, "\(path) cannot be replaced: \(what)\(String(cString: strerror(errno))).")
        }
        let descriptor = open(temporary, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw failed("") }
        defer { close(descriptor) }
        guard fchown(descriptor, before.st_uid, before.st_gid) == 0 else {
            throw failed("the new file cannot be given the owner \(before.st_uid) and group \(before.st_gid): ")
        }
        // After the change of the owner, which clears bits of the mode.
        guard fchmod(descriptor, before.st_mode & 0o777) == 0, fsync(descriptor) == 0, rename(temporary, path) == 0
        else { throw failed("") }
    }
}
