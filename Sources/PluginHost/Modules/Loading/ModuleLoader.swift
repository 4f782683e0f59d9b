import CPluginHost
import Glibc
import PluginABI
import PluginFile

/// A loader that opens the staged copy of a module and checks its description field by field.
struct ModuleLoader {
    let journal: Journal?
    /// Whether modules built by another Swift toolchain are accepted.
    let allowsOtherToolchains: Bool
    /// The scheme of patterns that are written without one; `nil` if they are refused.
    let scheme: String?

    /// Whether a seal may differ from what the code says, because the seal is about to be replaced.
    var ignoresSeals = false

    /// The processes of isolated modules; `nil` if all code is opened in this process.
    var workers: Workers?

    /// The runner for module code, with a timeout; `nil` to run it on the caller's thread without a time limit.
    var guardian: Guardian?

    /// Reads the description of a module that was opened or is part of the program.
    ///
    /// - Parameter entry: Returns the address of the description.
    /// - Throws: `invalidDescription`, `incompatible` or `invalidManifest`; `deadlineExceeded` if the entry function
    ///   does not return in time; `outOfResources`.
    func load(_ file: StagedFile, _ entry: @escaping @Sendable () -> UInt) throws(PluginError) -> LoadedModule {
        guard let answer = try run(.entry, file, "The entry function of", entry) else {
            throw overdue("The entry function", file)
        }
        // The description is static data of an image that is never unmapped.
        guard let description = UnsafePointer<plugin_module>(bitPattern: answer) else {
            throw PluginError(.invalidDescription, "The entry function of \(file.original) returned null.")
        }
        return try check(description, file)
    }

    /// Runs code of a file that is being started. Returns `nil` if the code does not return in time; it then continues
    /// to run.
    private func run<Result: Sendable>(
        _ step: Journal.Step, _ file: StagedFile, _ subject: String, consequence: String = "",
        _ body: @escaping @Sendable () -> Result
    ) throws(PluginError) -> Result? {
        let blame = Blame(file, journal)
        guard let guardian else { return blame.during(step) { body() } }
        return try guardian.run("\(subject) \(file.original)", consequence: consequence) {
            blame.during(step) { body() }
        }
    }

    private func overdue(_ what: String, _ file: StagedFile, _ more: String = "") -> PluginError {
        PluginError(
            .deadlineExceeded,
            "\(what) of \(file.original) did not return within \(guardian?.timeout ?? .zero), which is the "
                + "hookTimeout. The module is not started; its code continues on a thread of its own.\(more)")
    }

    /// The code of a file that was opened.
    enum OpenedCode {
        /// The entry function, which has not been called yet.
        case here(plugin_module_entry_function)
        /// A module in a process of its own.
        case elsewhere(LoadedModule)
    }

    /// Opens a staged copy, in this process or in one of its own.
    ///
    /// - Parameters:
    ///   - name: The name of the module, if it is known. A module that turns out to have another name is refused if it
    ///     was opened in a process of its own, or should have been.
    ///   - suggested: The likely name if it is not known; `nil` for the one that the name of the file suggests.
    /// - Throws: `openFailed` or `invalidFile`; `deadlineExceeded` if its constructors do not return in time;
    ///   `outOfResources`; if it is opened in a process of its own, also the errors of ``load(_:_:)``.
    func open(
        _ file: StagedFile, of name: String? = nil, suggested: String? = nil
    ) throws(PluginError) -> OpenedCode {
        guard let workers, workers.areUsed else { return .here(try openHere(file)) }
        if let name { return try open(file, of: name, workers) }
        // The name is known only when the file is open.
        let suggested = suggested ?? file.nameOfModule
        let guess = workers.rule(for: suggested, file)
        let debugged = workers.debugs(suggested) ? suggested : nil
        let module = try openElsewhere(file, guess, workers, debugged: debugged)
        let name = module.manifest.name
        let rule = workers.rule(for: name, file)
        let isDebuggedAsWished = debugged == (workers.debugs(name) ? name : nil)
        if workers.isolates(name), isDebuggedAsWished, rule == guess { return .elsewhere(module) }
        if let debugged { workers.tellOtherName(name, of: file, debugged: debugged) }
        module.process?.end()
        return try open(file, of: name, workers)
    }

    /// Opens a staged copy in the process in which a module of this name runs.
    private func open(_ file: StagedFile, of name: String, _ workers: Workers) throws(PluginError) -> OpenedCode {
        guard workers.isolates(name) else { return .here(try openHere(file)) }
        let rule = workers.rule(for: name, file)
        let module = try openElsewhere(file, rule, workers, debugged: workers.debugs(name) ? name : nil)
        guard module.manifest.name == name else {
            module.process?.end()
            throw PluginError(
                .invalidDescription,
                "\(file.original) names itself \(name.shortened) when it is opened first, and "
                    + "\(module.manifest.name.shortened) when it is opened again. The name of a module must be the same "
                    + "each time.")
        }
        return .elsewhere(module)
    }

    /// Opens a staged copy in a process of its own, and reads its description.
    private func openElsewhere(
        _ file: StagedFile, _ rule: IsolationRule, _ workers: Workers, debugged: String? = nil
    ) throws(PluginError) -> LoadedModule {
        let timeout = guardian?.timeout ?? .seconds(30)
        let (process, description) = try workers.open(file, rule, timeout: timeout, debugged: debugged)
        do throws(PluginError) {
            return try read(description, file, process)
        } catch {
            process.end()
            throw error
        }
    }

    /// Reads the description of a file that was opened.
    ///
    /// - Throws: `invalidDescription`, `incompatible` or `invalidManifest`; `deadlineExceeded` if the entry function
    ///   does not return in time; `outOfResources`.
    func load(_ file: StagedFile, _ code: OpenedCode) throws(PluginError) -> LoadedModule {
        switch code {
        case .here(let entry):
            let module = try load(file) { UInt(bitPattern: entry()) }
            // The description may be on the heap.
            plugin_host_add_image(
                unsafeBitCast(entry, to: UnsafeRawPointer.self),
                strdup("\(module.manifest.name) \(module.manifest.version) (\(file.original.printable))"), file.number)
            guard workers?.isolates(module.manifest.name) != true else {
                throw PluginError(
                    .invalidDescription,
                    "\(file.original) names itself \(module.manifest.name) in the process of the host, where that module "
                        + "may not run, and has named itself otherwise in another process. The name of a module must "
                        + "be the same each time.")
            }
            return module
        case .elsewhere(let module): return module
        }
    }

    /// Loads a staged copy into this process and finds its entry function.
    private func openHere(_ file: StagedFile) throws(PluginError) -> plugin_module_entry_function {
        LinkedRecords.note()
        try MapsBudget.shared.require(for: file.original)
        let opening = LibraryOpening(file.original)
        let opened = try run(
            .opening, file, "A constructor of", consequence: LibraryOpening.consequence
        ) { () -> Swift.Result<UInt, PluginError> in
            defer { opening.end() }
            plugin_host_expect_image(strdup(file.path), strdup(file.original.printable), file.number)
            for library in file.libraryCopies {
                let name = library.split(separator: "/").last.map(String.init) ?? library
                plugin_host_expect_library(
                    strdup(library), strdup("\(name.printable) of \(file.original.printable)"), file.number)
            }
            // The image is never unmapped, because the Swift runtime cannot forget an image.
            guard let image = dlopen(file.path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) else {
                let reason = dlerror().map { String(cString: $0) } ?? "unknown reason"
                return .failure(
                    PluginError(
                        .openFailed,
                        "\(file.original) cannot be opened: \(file.withOriginalPaths(reason))."
                            + ProcessLimits.explanation(of: reason)))
            }
            ConformanceSearch.run()
            guard let symbol = dlsym(image, PLUGIN_ENTRY_SYMBOL) else {
                return .failure(
                    PluginError(.invalidFile, "\(file.original) does not export \(PLUGIN_ENTRY_SYMBOL)."))
            }
            return .success(UInt(bitPattern: symbol))
        }
        guard let opened else {
            opening.isOverdue()
            throw overdue("A constructor", file, LibraryOpening.consequence)
        }
        return unsafeBitCast(try opened.get(), to: plugin_module_entry_function.self)
    }

    // MARK: The description

    /// Checks the description of a module in a file or in the program itself.
    func check(_ module: UnsafePointer<plugin_module>, _ file: StagedFile) throws(PluginError) -> LoadedModule {
        try Blame(file, journal).during(.entry) { () throws(PluginError) in try read(module, file, nil) }
    }

    /// Reads a description and everything that it points to, after checking that the memory is readable.
    ///
    /// - Parameter process: The process that the description stands for; `nil` if the code is in this process.
    private func read(
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
