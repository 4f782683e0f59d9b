import CPluginHost
import PluginABI
import PluginFile

/// The checks of a module's description, field by field.
extension ModuleLoader {
    /// Checks the description of a module in a file or in the program itself.
    func check(_ module: UnsafePointer<plugin_module>, _ file: StagedFile) throws(PluginError) -> LoadedModule {
        // The code of another module may be running; if that ends the process, this file is not to be blamed.
        try Blame(file, journal).during(nil, "entry") { () throws(PluginError) in try read(module, file, nil) }
    }

    /// Reads a description and everything that it points to, after checking that the memory is readable.
    ///
    /// - Parameter process: The process that the description stands for; `nil` if the code is in this process.
    func read(
        _ module: UnsafePointer<plugin_module>, _ file: StagedFile, _ process: WorkerProcess?
    ) throws(PluginError) -> LoadedModule {
        let path = file.original
        let memory = ReadableMemory(of: path)
        try memory.require(module, 16, "the description")
        // The first 16 bytes are checked before anything else is read.
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
                    + "\(PLUGIN_ABI_MAJOR).\(PLUGIN_ABI_MINOR) and loads \(PLUGIN_ABI_MAJOR).x. Build it with this "
                    + "host's plugin_abi.h.")
        }
        guard size >= MemoryLayout<plugin_module>.size else {
            throw PluginError(
                .invalidDescription,
                "The description of \(path) states a size of \(size) bytes; in version \(major).\(minor) it has at "
                    + "least \(MemoryLayout<plugin_module>.size). Set size to sizeof(plugin_module).")
        }
        try memory.require(module, MemoryLayout<plugin_module>.size, "the description")
        let description = module.pointee
        let toolchain = try text(description.toolchain, "toolchain", memory, file, atMost: 256)
        if process?.sharesRuntime != false { try checkToolchain(toolchain, file, isIsolated: process != nil) }
        let (manifest, routes) = try manifest(description, minor, memory, file)
        if let seal = file.image.seal, !ignoresSeals {
            try seal.check(
                minor: minor, toolchain: toolchain, text: description.manifest.text, manifest: manifest, path: path)
        }
        let functions = try entries(
            description.functions, description.function_count, "functions", ("name", "invoke"), memory, file
        ) { ($0.name, unsafeBitCast($0.invoke, to: UInt.self)) }
        let factories = try entries(
            description.factories, description.factory_count, "factories", ("target", "make"), memory, file
        ) { ($0.target, unsafeBitCast($0.make, to: UInt.self)) }
        try match(manifest, functions, factories, abiMinor: minor, file)
        return LoadedModule(
            file, toolchain: toolchain, abiMinor: minor, manifest: manifest, routes: routes,
            description: module, functions: functions, factories: factories, process: process)
    }

    private func text(
        _ string: plugin_string, _ field: String, _ memory: ReadableMemory, _ file: StagedFile, atMost limit: UInt64
    ) throws(PluginError) -> String {
        guard string.count <= limit else {
            throw PluginError(
                .invalidDescription,
                "The field \(field) in the description of \(file.original) states a length of \(string.count) bytes; "
                    + "at most \(limit) are accepted.")
        }
        try memory.require(string.bytes, Int(string.count), field)
        do throws(PluginError) {
            try string.check("The field \(field)")
        } catch {
            throw PluginError(.invalidDescription, "In the description of \(file.original): \(error.message)")
        }
        return string.text
    }

    /// Checks that a module which shares the host's Swift runtime was built by the same toolchain: on Linux there is no
    /// stable Swift ABI. A module that names no toolchain needs no Swift runtime, even if it is linked to the runtime,
    /// as C modules built by SwiftPM are.
    private func checkToolchain(_ toolchain: String, _ file: StagedFile, isIsolated: Bool) throws(PluginError) {
        guard !allowsOtherToolchains, file.image.needed.contains("libswiftCore.so") else { return }
        guard !toolchain.isEmpty, toolchain != Toolchain.current else { return }
        throw PluginError(
            .incompatible,
            "\(file.original) was built by “\(toolchain.shortened)”, "
                + "but shares the Swift runtime of this host, which was built by "
                + "“\(Toolchain.current.shortened)”. Build it with that toolchain, or with -static-stdlib"
                + (isIsolated ? ", or install the program pluginhost-worker beside the host's program." : "."))
    }

    private func manifest(
        _ description: plugin_module, _ minor: UInt16, _ memory: ReadableMemory, _ file: StagedFile
    ) throws(PluginError) -> (ModuleManifest, [RouteEntry]) {
        let count = description.manifest.count
        guard count <= PLUGIN_MANIFEST_MAX_BYTES else {
            throw PluginError(
                .invalidManifest,
                "The manifest of \(file.original) states a length of \(count) bytes; at most "
                    + "\(PLUGIN_MANIFEST_MAX_BYTES) are accepted.")
        }
        guard let bytes = description.manifest.bytes, count > 0 else {
            throw PluginError(.invalidManifest, "\(file.original) has no manifest.")
        }
        try memory.require(bytes, Int(count), "the manifest")
        do throws(PluginError) {
            let text = UnsafeRawBufferPointer(start: bytes, count: Int(count))
            let manifest = try ModuleManifest(parsing: text, abiMinor: minor)
            return (manifest, try manifest.routeEntries(scheme: scheme))
        } catch {
            // The size of a pointer without the last byte, which the macro takes for the zero at the end of a text.
            if count == UInt64(MemoryLayout<UnsafeRawPointer>.size - 1) {
                throw PluginError(
                    .invalidManifest,
                    "The manifest of \(file.original) has \(count) bytes; was PLUGIN_STRING_INIT given a pointer? It "
                        + "takes a literal or an array: write “static const char manifest[] = …”, not “*manifest”.")
            }
            throw PluginError(error.code, "The manifest of \(file.original) was rejected. \(error.message)")
        }
    }

    /// Returns a table of the description as a dictionary that is keyed by the names of the entries.
    ///
    /// - Parameters:
    ///   - table: The table's name in the description.
    ///   - fields: The names of the fields of an entry that contain its name and its function.
    ///   - read: Returns the name of an entry and the address of its function.
    private func entries<Entry>(
        _ start: UnsafePointer<Entry>?, _ count: UInt64, _ table: String,
        _ fields: (name: String, function: String), _ memory: ReadableMemory, _ file: StagedFile,
        _ read: (Entry) -> (name: plugin_string, function: UInt)
    ) throws(PluginError) -> [String: Entry] {
        func invalid(_ what: String) -> PluginError {
            PluginError(.invalidDescription, "The description of \(file.original) \(what)")
        }
        guard count <= 100_000 else {
            throw invalid("states \(count) \(table); at most 100000 are accepted.")
        }
        guard count == 0 || start != nil else { throw invalid("states \(count) \(table), but the pointer is null.") }
        try memory.require(start, Int(count) * MemoryLayout<Entry>.stride, "the table of \(table)")
        var entries = [String: Entry](minimumCapacity: Int(count))
        for (index, entry) in UnsafeBufferPointer(start: start, count: Int(count)).enumerated() {
            let (bytes, function) = read(entry)
            let name = try text(bytes, "\(table)[\(index)].\(fields.name)", memory, file, atMost: 1024)
            // From here on names are compared as bytes. ASCII is required since two equal Swift strings can otherwise
            // consist of different bytes.
            guard name.utf8.allSatisfy({ $0 < 0x80 }) else {
                throw invalid(
                    "has the name “\(name.shortened)” among its \(table); names must be ASCII, as in the manifest.")
            }
            guard function != 0 else {
                throw invalid("has “\(name.shortened)” among its \(table), whose \(fields.function) is null.")
            }
            guard entries.updateValue(entry, forKey: name) == nil else {
                throw invalid("has two \(table) named “\(name.shortened)”.")
            }
        }
        return entries
    }

    /// Checks that the manifest and the tables declare the same functions and factories. A module with a newer minor
    /// version may have functions for what this host has skipped in its manifest.
    private func match(
        _ manifest: ModuleManifest, _ functions: [String: plugin_function], _ factories: [String: plugin_factory],
        abiMinor: UInt16, _ file: StagedFile
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
                "The manifest of \(file.original) declares “\(missing.shortened)”, but there is no function of "
                    + "that name.\(didYouMean(missing, functions.keys)) The names in the function table of the "
                    + "description must be those of the manifest.")
        }
        if abiMinor <= UInt16(PLUGIN_ABI_MINOR),
            let superfluous = Set(functions.keys).subtracting(declared).sorted().first
        {
            throw PluginError(
                .invalidManifest,
                "\(file.original) has a function “\(superfluous.shortened)” that its manifest does not declare."
                    + " Declare it, or remove it from the function table.")
        }
        let withInstance = Set(manifest.targets.filter { $0.instance != .none }.map(\.name))
        if let missing = withInstance.subtracting(factories.keys).sorted().first {
            throw PluginError(
                .invalidManifest,
                "The manifest of \(file.original) declares an instance for target \(missing), but there is no factory.")
        }
        if let superfluous = Set(factories.keys).subtracting(withInstance).sorted().first {
            throw PluginError(
                .invalidManifest,
                "\(file.original) has a factory for target “\(superfluous.shortened)”, whose manifest entry "
                    + "declares no instance."
            )
        }
    }

    private func hex(_ number: UInt64) -> String { "0x" + String(number, radix: 16, uppercase: true) }
}
