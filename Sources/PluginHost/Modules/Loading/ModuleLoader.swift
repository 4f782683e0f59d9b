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

    /// Reads the description of a module that is part of the program.
    ///
    /// - Parameter entry: Returns the address of the description.
    /// - Throws: `invalidDescription`, `incompatible` or `invalidManifest`; `deadlineExceeded` if the entry function
    ///   does not return in time; `outOfResources`.
    func load(_ file: StagedFile, _ entry: @escaping @Sendable () -> UInt) throws(PluginError) -> LoadedModule {
        try description(of: file, at: try begin(.entry, file, "The entry function of", entry)())
    }

    private func description(of file: StagedFile, at address: UInt?) throws(PluginError) -> LoadedModule {
        guard let address else { throw overdue("The entry function", file) }
        // The description is static data of an image that is never unmapped.
        guard let description = UnsafePointer<plugin_module>(bitPattern: address) else {
            throw PluginError(.invalidDescription, "The entry function of \(file.original) returned null.")
        }
        return try check(description, file)
    }

    /// Begins to run code of a file that is being started. The function that is returned waits for it, and returns `nil`
    /// if the code does not return in time; it then continues to run.
    private func begin<Result: Sendable>(
        _ step: Journal.Step, _ file: StagedFile, _ subject: String, consequence: String = "",
        _ body: @escaping @Sendable () -> Result
    ) throws(PluginError) -> () -> Result? {
        let blame = Blame(file, journal)
        guard let guardian else {
            let result = blame.during(step) { body() }
            return { result }
        }
        return try guardian.begin("\(subject) \(file.original)", consequence: consequence) {
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
    ///   - retry: Called once when the file can be opened, if an overdue constructor of another file keeps it from
    ///     being opened in this process; see ``LibraryOpening``.
    /// - Throws: `openFailed` or `invalidFile`; `deadlineExceeded` if its constructors do not return in time;
    ///   `outOfResources`; if it is opened in a process of its own, also the errors of ``load(_:_:)``.
    func open(
        _ file: StagedFile, of name: String? = nil, suggested: String? = nil,
        whenFree retry: (@Sendable () -> Void)? = nil
    ) throws(PluginError) -> OpenedCode {
        guard let workers, workers.areUsed else { return .here(try openHere(file, retry)) }
        if let name { return try open(file, of: name, workers, retry) }
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
        return try open(file, of: name, workers, retry)
    }

    /// Opens a staged copy in the process in which a module of this name runs.
    private func open(
        _ file: StagedFile, of name: String, _ workers: Workers, _ retry: (@Sendable () -> Void)?
    ) throws(PluginError) -> OpenedCode {
        guard workers.isolates(name) else { return .here(try openHere(file, retry)) }
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

    /// Opens a staged copy, and reads its description.
    ///
    /// - Parameter name: The name of the module, if it is known.
    /// - Throws: The errors of ``open(_:of:suggested:whenFree:)`` and ``load(_:_:)``.
    func load(_ file: StagedFile, of name: String?) throws(PluginError) -> LoadedModule {
        try load(file, enter(file, try open(file, of: name))())
    }

    /// What the entry function of a file has returned.
    enum Entered {
        /// The address of the description; `nil` if the function has not returned in time.
        case here(UInt?, plugin_module_entry_function)
        /// A module in a process of its own, whose description has been read.
        case elsewhere(LoadedModule)
        /// The function was not called.
        case failed(PluginError)
    }

    /// Begins to call the entry function of a file that was opened. The function that is returned waits for its end, and
    /// must be called.
    func enter(_ file: StagedFile, _ code: OpenedCode) -> () -> Entered {
        switch code {
        case .here(let entry):
            do throws(PluginError) {
                let wait = try begin(.entry, file, "The entry function of") { UInt(bitPattern: entry()) }
                return { .here(wait(), entry) }
            } catch {
                return { .failed(error) }
            }
        case .elsewhere(let module): return { .elsewhere(module) }
        }
    }

    /// Reads the description of a file that was opened.
    ///
    /// - Throws: `invalidDescription`, `incompatible` or `invalidManifest`; `deadlineExceeded` if the entry function
    ///   has not returned in time; `outOfResources` if it was not called.
    func load(_ file: StagedFile, _ entered: Entered) throws(PluginError) -> LoadedModule {
        switch entered {
        case .here(let address, let entry):
            let module = try description(of: file, at: address)
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
        case .failed(let error): throw error
        }
    }

    /// Loads a staged copy into this process and finds its entry function.
    private func openHere(
        _ file: StagedFile, _ retry: (@Sendable () -> Void)?
    ) throws(PluginError) -> plugin_module_entry_function {
        try LibraryOpening.requireFree(for: file.original, retry)
        LinkedRecords.note()
        try MapsBudget.shared.require(for: file.original)
        let opening = LibraryOpening(file.original)
        let opened = try begin(
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
        }()
        guard let opened else {
            opening.isOverdue()
            throw overdue("A constructor", file, LibraryOpening.consequence)
        }
        return unsafeBitCast(try opened.get(), to: plugin_module_entry_function.self)
    }
}
