import CPluginABI
import CPluginHost
import Glibc
import PluginABI

/// A module whose code is in the process and whose description fits: what a generation is made of.
final class LoadedModule: @unchecked Sendable {
    // The pointers point to static data of an image that is never unmapped, and what changes is used by one queue only.

    /// Set once more by who takes what is linked into the program.
    var staged: StagedFile
    let toolchain: String
    let abiMinor: UInt16
    let manifest: ModuleManifest
    /// As the registry has them.
    let routes: [RouteEntry]
    let description: UnsafePointer<plugin_module>
    /// By name: `target/action`, `type#action`, `@hook`, `!event`, `~interceptor`.
    private(set) var functions: [String: plugin_function]
    /// By target.
    private(set) var factories: [String: plugin_factory]
    /// Whether it has been activated once. Its globals are not new any more: who wants it again loads it anew.
    private(set) var isSpent = false

    init(
        _ staged: StagedFile, toolchain: String, abiMinor: UInt16, manifest: ModuleManifest,
        description: UnsafePointer<plugin_module>, functions: [String: plugin_function],
        factories: [String: plugin_factory]
    ) {
        self.staged = staged
        self.toolchain = toolchain
        self.abiMinor = abiMinor
        self.manifest = manifest
        var routes: [RouteEntry] = []
        routes.reserveCapacity(manifest.routes.count)
        for route in manifest.routes { routes.append(RouteEntry(route, of: manifest.name, after: routes.last)) }
        self.routes = routes
        self.description = description
        self.functions = functions
        self.factories = factories
    }

    /// Notes that a generation was made of it. Its functions are forgotten then, unless another one can be made.
    func spend() {
        isSpent = true
        if !isLinked { (functions, factories) = ([:], [:]) }
    }

    /// Whether a copy has the content of this module. The copy of one that has ended is gone, and then the digest is
    /// enough: before it runs again, it is loaded anew.
    func hasContent(of copy: StagedFile) -> Bool { (try? Staging.sameBytes(staged, copy)) ?? isSpent }

    /// The manifest as it is written.
    var manifestText: String { description.pointee.manifest.text }
    var file: String { staged.original }
    var stagedPath: String { staged.path }
    var isLinked: Bool { staged.source == .linked }
}

/// Opens the staged copy of a module and checks what it says, field by field.
struct ModuleLoader {
    let journal: Journal?
    /// Whether modules of another Swift toolchain are taken.
    let allowsOtherToolchains: Bool

    /// Asks an opened file what it is.
    ///
    /// - Throws: `invalidDescription`, `incompatible` or `invalidManifest`.
    func load(_ file: StagedFile, entry: plugin_module_entry_function) throws(PluginError) -> LoadedModule {
        let returned = try during(.entry, file) { () throws(PluginError) in entry() }
        guard let description = returned else {
            throw PluginError(.invalidDescription, "\(PLUGIN_ENTRY_SYMBOL) of \(file.original) returned null.")
        }
        return try check(description, file)
    }

    /// Runs code of a module for the first time: the crash report and the journal say so if it kills the process.
    func during<Result>(
        _ step: Journal.Step, _ file: StagedFile, _ body: () throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let label = strdup("running the \(step.rawValue) of \(file.original)")
        plugin_host_set_step(label)
        defer {
            plugin_host_set_step(nil)
            free(label)
        }
        // The program cannot go on without what is linked into it: nothing is remembered against that.
        guard let journal, file.source == .file else { return try body() }
        return try journal.during(step: step, file: file.original, digest: file.digest, size: file.size, body)
    }

    /// Brings a copy into the process and finds its entry function.
    ///
    /// - Throws: `openFailed` or `invalidFile`.
    func open(_ file: StagedFile) throws(PluginError) -> plugin_module_entry_function {
        // Never unmapped: the Swift runtime cannot forget an image.
        let image = try during(.opening, file) { () throws(PluginError) in
            guard let image = dlopen(file.path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) else {
                let reason = dlerror().map { String(cString: $0) } ?? "unknown reason"
                throw PluginError(
                    .openFailed,
                    "\(file.original) cannot be opened: \(file.withOriginalPaths(reason)).")
            }
            return image
        }
        guard let symbol = dlsym(image, PLUGIN_ENTRY_SYMBOL) else {
            throw PluginError(.invalidFile, "\(file.original) does not export \(PLUGIN_ENTRY_SYMBOL).")
        }
        return unsafeBitCast(symbol, to: plugin_module_entry_function.self)
    }

    // MARK: The description

    /// Checks a description, of a file or of the program itself.
    func check(_ module: UnsafePointer<plugin_module>, _ file: StagedFile) throws(PluginError) -> LoadedModule {
        let path = file.original
        // The first 16 bytes, before anything else is read.
        let raw = UnsafeRawPointer(module)
        let magic = raw.load(as: UInt64.self)
        guard magic == UInt64(PLUGIN_ABI_MAGIC) else {
            throw PluginError(
                .invalidDescription,
                "The description of \(path) begins with \(hex(magic)), not with PLUGIN_ABI_MAGIC "
                    + "(\(hex(UInt64(PLUGIN_ABI_MAGIC)))).")
        }
        let size = raw.load(fromByteOffset: 8, as: UInt32.self)
        let major = raw.load(fromByteOffset: 12, as: UInt16.self)
        let minor = raw.load(fromByteOffset: 14, as: UInt16.self)
        guard major == PLUGIN_ABI_MAJOR else {
            throw PluginError(
                .incompatible,
                "\(path) was built for version \(major).\(minor) of the binary interface; this host has "
                    + "\(PLUGIN_ABI_MAJOR).\(PLUGIN_ABI_MINOR), and loads \(PLUGIN_ABI_MAJOR).x. Build it with this "
                    + "host's plugin_abi.h.")
        }
        guard size >= MemoryLayout<plugin_module>.size else {
            throw PluginError(
                .invalidDescription,
                "The description of \(path) says that it is \(size) bytes long; version \(major).\(minor) has at least "
                    + "\(MemoryLayout<plugin_module>.size). Set size to sizeof(plugin_module).")
        }
        let description = module.pointee
        let toolchain = try text(description.toolchain, "toolchain", file, atMost: 256)
        try checkToolchain(toolchain, file)
        let manifest = try manifest(description, minor, file)
        let functions = try functions(description, file)
        let factories = try factories(description, file)
        try match(manifest, functions, factories, file)
        let name = manifest.name
        if file.source == .file { plugin_host_add_image(module, strdup("\(name) \(manifest.version) (\(path))")) }
        return LoadedModule(
            file, toolchain: toolchain, abiMinor: minor, manifest: manifest,
            description: module, functions: functions, factories: factories)
    }

    private func text(
        _ string: plugin_string, _ field: String, _ file: StagedFile, atMost limit: UInt64
    ) throws(PluginError) -> String {
        guard string.count <= limit else {
            throw PluginError(
                .invalidDescription,
                "The field \(field) in the description of \(file.original) announces \(string.count) bytes; at most "
                    + "\(limit) are accepted.")
        }
        do throws(PluginError) {
            try string.check("The field \(field)")
        } catch {
            throw PluginError(.invalidDescription, "In the description of \(file.original): \(error.message)")
        }
        return string.text
    }

    /// Code that runs on the host's Swift runtime must be compiled for it: on Linux there is no stable Swift ABI. One
    /// that names no toolchain says that it needs no Swift runtime (SwiftPM links C modules against it all the same).
    private func checkToolchain(_ toolchain: String, _ file: StagedFile) throws(PluginError) {
        guard !allowsOtherToolchains, file.image.needed.contains("libswiftCore.so") else { return }
        guard !toolchain.isEmpty, toolchain != Toolchain.current else { return }
        throw PluginError(
            .incompatible,
            "\(file.original) was built by “\(toolchain)”, "
                + "and shares the Swift runtime of this host, which was built by “\(Toolchain.current)”. Build it with "
                + "that toolchain, or with -static-stdlib.")
    }

    private func manifest(
        _ description: plugin_module, _ minor: UInt16, _ file: StagedFile
    ) throws(PluginError) -> ModuleManifest {
        let count = description.manifest.count
        guard count <= PLUGIN_MANIFEST_MAX_BYTES else {
            throw PluginError(
                .invalidManifest,
                "The manifest of \(file.original) announces \(count) bytes; at most \(PLUGIN_MANIFEST_MAX_BYTES) are "
                    + "accepted.")
        }
        guard let bytes = description.manifest.bytes, count > 0 else {
            throw PluginError(.invalidManifest, "\(file.original) has no manifest.")
        }
        do throws(PluginError) {
            let text = UnsafeRawBufferPointer(start: bytes, count: Int(count))
            return try ModuleManifest(parsing: text, abiMinor: minor)
        } catch {
            throw PluginError(error.code, "The manifest of \(file.original) is refused. \(error.message)")
        }
    }

    private func functions(
        _ description: plugin_module, _ file: StagedFile
    ) throws(PluginError) -> [String: plugin_function] {
        let table = try entries(description.functions, description.function_count, "functions", file)
        var functions = [String: plugin_function](minimumCapacity: table.count)
        for (index, function) in table.enumerated() {
            let name = try text(function.name, "functions[\(index)].name", file, atMost: 1024)
            // From here on its bytes are the name: other texts can be equal and have other bytes.
            guard name.utf8.allSatisfy({ $0 < 0x80 }) else {
                throw PluginError(
                    .invalidDescription,
                    "The name of the function “\(name)” in the description of \(file.original) is not ASCII, as names in a "
                        + "manifest are.")
            }
            guard unsafeBitCast(function.invoke, to: UInt.self) != 0 else {
                throw PluginError(
                    .invalidDescription, "The function “\(name)” in the description of \(file.original) is null.")
            }
            guard functions.updateValue(function, forKey: name) == nil else {
                throw PluginError(
                    .invalidDescription, "The description of \(file.original) has two functions “\(name)”.")
            }
        }
        return functions
    }

    private func factories(
        _ description: plugin_module, _ file: StagedFile
    ) throws(PluginError) -> [String: plugin_factory] {
        let table = try entries(description.factories, description.factory_count, "factories", file)
        var factories: [String: plugin_factory] = [:]
        for (index, factory) in table.enumerated() {
            let target = try text(factory.target, "factories[\(index)].target", file, atMost: 1024)
            guard unsafeBitCast(factory.make, to: UInt.self) != 0 else {
                throw PluginError(
                    .invalidDescription,
                    "The factory of target \(target) in the description of \(file.original) has no make.")
            }
            guard factories.updateValue(factory, forKey: target) == nil else {
                throw PluginError(
                    .invalidDescription,
                    "The description of \(file.original) has two factories for target \(target).")
            }
        }
        return factories
    }

    private func entries<Entry>(
        _ start: UnsafePointer<Entry>?, _ count: UInt64, _ field: String, _ file: StagedFile
    ) throws(PluginError) -> UnsafeBufferPointer<Entry> {
        guard count <= 100_000 else {
            throw PluginError(
                .invalidDescription,
                "The description of \(file.original) announces \(count) \(field); at most 100000 are accepted.")
        }
        guard count == 0 || start != nil else {
            throw PluginError(
                .invalidDescription,
                "The description of \(file.original) announces \(count) \(field), with a null pointer.")
        }
        return UnsafeBufferPointer(start: start, count: Int(count))
    }

    /// The manifest and the tables must say the same.
    private func match(
        _ manifest: ModuleManifest, _ functions: [String: plugin_function], _ factories: [String: plugin_factory],
        _ file: StagedFile
    ) throws(PluginError) {
        var declared: Set<String> = []
        for target in manifest.targets { declared.formUnion(target.actions.map { "\(target.name)/\($0.name)" }) }
        for type in manifest.types { declared.formUnion(type.actions.map { "\(type.name)#\($0.name)" }) }
        declared.formUnion(manifest.hooks.map { "@\($0.rawValue)" })
        declared.formUnion(manifest.events.map { "!\($0.name)" })
        declared.formUnion(manifest.interceptors.map { "~\($0.name)" })
        if let missing = declared.subtracting(functions.keys).sorted().first {
            throw PluginError(
                .invalidManifest,
                "The manifest of \(file.original) declares “\(missing)”, and there is no function of that name.")
        }
        if let superfluous = Set(functions.keys).subtracting(declared).sorted().first {
            throw PluginError(
                .invalidManifest,
                "\(file.original) has a function “\(superfluous)” that its manifest does not declare.")
        }
        let withInstance = Set(manifest.targets.filter { $0.instance != .none }.map(\.name))
        if let missing = withInstance.subtracting(factories.keys).sorted().first {
            throw PluginError(
                .invalidManifest,
                "The manifest of \(file.original) declares an instance for target \(missing), and there is no factory.")
        }
        if let superfluous = Set(factories.keys).subtracting(withInstance).sorted().first {
            throw PluginError(
                .invalidManifest,
                "\(file.original) has a factory for target “\(superfluous)”, whose manifest entry declares no instance."
            )
        }
    }

    private func hex(_ number: UInt64) -> String { "0x" + String(number, radix: 16, uppercase: true) }
}
