public import PluginABI
package import PluginFile

/// The description of one module file.
public struct ModuleReport: Sendable {
    /// A map: `file`, `elf`, `abi`, `toolchain`, `manifest`, and `notes`, a list of texts about types that could not be
    /// derived, if there are any. `exports` in `elf` lists the symbols that the file exports besides its entry
    /// function, without those of Swift, which `swiftExports` counts. `sealed` is true if everything was read without
    /// running code; then `elf` of a file for another machine consists of `size` and `machine`.
    public private(set) var json: Value
    /// `nil` if its code was not run.
    private let module: LoadedModule?

    fileprivate init(_ json: Value, _ module: LoadedModule?) { (self.json, self.module) = (json, module) }

    /// Returns the report with the types that the module derives from its code in its manifest: records, enumerations
    /// and object types. Modules that are not written in Swift name them in their manifests anyway.
    ///
    /// This runs code of the module in this process, such as `init(from:)` of its types, which can trap. A host never
    /// does so.
    public func derivingTypes() -> ModuleReport {
        with { (module) throws(PluginError) in
            guard let types = try module.derivedTypes() else { return (nil, []) }
            return (types.manifest, types.notes)
        }
    }

    fileprivate func withTypes(of outcome: ScanProcess.Outcome) -> ModuleReport {
        with { (module) throws(PluginError) in
            guard outcome.ending == .exited(0) else {
                let place = outcome.words.isEmpty ? "" : " (\(outcome.words.shortened))"
                let reason = "the code of the module \(outcome.ending) when asked for them\(place)."
                return (nil, ["The types are not known: \(reason)"])
            }
            if let manifest = outcome.typedManifest { try module.checkTypes(manifest) }
            return (outcome.typedManifest, outcome.words.split(separator: "\n").map(String.init))
        }
    }

    /// Returns the report with types, or with a note that they are not usable.
    ///
    /// - Parameter types: Returns the manifest with types, and notes.
    fileprivate func with(
        _ types: (LoadedModule) throws(PluginError) -> (manifest: String?, notes: [String])
    ) -> ModuleReport {
        var report = self
        guard let module else { return self }
        do throws(PluginError) {
            let (manifest, notes) = try types(module)
            if let manifest { report.set("manifest", try Value(json: manifest)) }
            report.add(notes: notes)
        } catch {
            report.add(notes: ["The types are not usable. \(error.message)"])
        }
        return report
    }

    private mutating func add(notes: [String]) {
        if !notes.isEmpty { set("notes", .list(notes.map { .string($0.printable) })) }
    }

    private mutating func set(_ key: String, _ value: Value) {
        var entries = json.map ?? [:]
        entries[key] = value
        json = .map(entries)
    }
}

extension PluginHost {
    /// Reads a file without registering it. Its code runs in this process until it has returned its description: do
    /// this in a child process if the code must not do any harm.
    ///
    /// - Throws: The error that describes what is wrong with the file.
    public static func inspect(file: String, trustsEveryone: Bool = false) throws(PluginError) -> ModuleReport {
        let staging = try Staging()
        defer { staging.close() }
        let staged = try staging.stageWhenWritten(path: file, checkTrust: !trustsEveryone)
        // A module of another toolchain can be described, although it cannot be run.
        let loader = ModuleLoader(
            journal: nil, allowsOtherToolchains: true, scheme: RoutePattern.unknownScheme)
        return try report(try loader.load(staged, of: nil), staged, file)
    }

    /// Reads a file as ``inspect(file:trustsEveryone:)`` does, but runs its code in a scan process. For programs that
    /// end soon, since the description is never freed.
    ///
    /// - Parameter timeout: How long the constructors or the entry function may take.
    /// - Returns: `nil` if the file does not pass, or no such process can be started. The file can then be read by a
    ///   process that has the symbols of this program, and that reports a crash as one of the program.
    /// - Throws: The error that describes what is wrong with the file.
    package static func inspectByScan(
        file: String, trustsEveryone: Bool, timeout: Duration
    ) throws(PluginError) -> ModuleReport? {
        let staging = try Staging()
        defer { staging.close() }
        let staged = try staging.stageWhenWritten(path: file, checkTrust: !trustsEveryone)
        guard let (outcome, description) = try scan(staged, timeout) else { return nil }
        let loader = ModuleLoader(
            journal: nil, allowsOtherToolchains: true, scheme: RoutePattern.unknownScheme)
        return try report(try loader.check(description, staged), staged, file).withTypes(of: outcome)
    }

    /// Runs a scan process, and runs it again without the types whose code has crashed it, as long as time is left.
    ///
    /// - Parameters:
    ///   - timeout: The time for all runs.
    ///   - now: Returns the time in nanoseconds.
    ///   - run: Runs the process, with a limit for its steps, without the code of some types; `nil` if it cannot.
    static func retrying(
        within timeout: Duration, now: () -> Int64 = monotonicNow,
        _ run: (_ limit: Duration, _ without: [String]) -> ScanProcess.Outcome?
    ) -> ScanProcess.Outcome? {
        let start = now()
        var without: [String] = []
        var left = timeout
        while true {
            guard let outcome = run(left, without) else { return nil }
            left = timeout - .nanoseconds(now() - start)
            guard outcome.isDescribed, case .killed = outcome.ending, without.count < crashesMax,
                !outcome.words.isEmpty, !without.contains(outcome.words), left > .zero
            else { return outcome }
            without.append(outcome.words)
        }
    }

    /// The maximum number of types that are skipped because their code crashed a scan process.
    private static let crashesMax = 16

    /// Reads the seal of a file, which may be for another machine. No code of the file is run.
    ///
    /// - Returns: `nil` if the file has no seal, or cannot be read; the other functions that read it report why.
    /// - Throws: The error that describes what is wrong with the seal.
    package static func inspectSeal(file: String, trustsEveryone: Bool) throws(PluginError) -> ModuleReport? {
        guard let source = try? SourceFile(opening: file) else { return nil }
        var bytesRead = 0
        var machine: String?
        var seal: ManifestSeal?
        do throws(PluginError) {
            seal = try source.inspect(&bytesRead) { bytes throws(PluginError) in
                let sections = try ELFSections(bytes, forAnyMachine: true)
                machine = sections.foreignMachine
                return try ManifestSeal(of: bytes, sections)
            }
        } catch {
            // A file for this machine may still be being written.
            guard machine != nil else { return nil }
            throw error
        }
        guard let seal else { return nil }
        if let machine {
            return try report(
                seal, ["size": .int(Int(source.identity.size)), "machine": .string(machine)], file)
        }
        let staging = try Staging()
        defer { staging.close() }
        let staged = try staging.stageWhenWritten(path: file, checkTrust: !trustsEveryone)
        guard let seal = staged.image.seal else { return nil }
        return try report(seal, try elf(staged), file)
    }

    private static func report(
        _ seal: ManifestSeal, _ elf: Value, _ file: String
    ) throws(PluginError) -> ModuleReport {
        let manifest = try seal.parsedManifest(path: file)
        let typed = try seal.parsedManifest(withTypes: true, path: file)
        guard (manifest.name, manifest.version) == (typed.name, typed.version) else {
            throw PluginError(
                .sealMismatch,
                "The seal of \(file) has a manifest of \(manifest.name) \(manifest.version), and one with types of "
                    + "\(typed.name) \(typed.version). Build the module again, and seal it again.")
        }
        _ = try manifest.routeEntries(scheme: RoutePattern.unknownScheme)
        let json: Value = [
            "file": .string(file), "elf": elf, "sealed": true,
            "abi": ["major": .int(Int(seal.abiMajor)), "minor": .int(Int(seal.abiMinor))],
            "toolchain": seal.toolchain.isEmpty ? nil : .string(seal.toolchain),
            "manifest": try Value(json: seal.typedManifest ?? seal.manifest),
        ]
        return ModuleReport(json, nil)
    }

    /// Reads what the code of a file says, in a scan process, for its seal.
    ///
    /// - Parameters:
    ///   - trustsEveryone: Whether files that others could have written are opened, too.
    ///   - timeout: How long the constructors or the entry function may take.
    /// - Returns: `nil` if the file does not pass, or no such process can be started.
    /// - Throws: The error that describes what is wrong with the file.
    package static func sealContent(
        of file: String, trustsEveryone: Bool, timeout: Duration
    ) throws(PluginError) -> ManifestSeal? {
        let staging = try Staging()
        defer { staging.close() }
        let staged = try staging.stageWhenWritten(path: file, checkTrust: !trustsEveryone)
        guard let (outcome, description) = try scan(staged, timeout) else { return nil }
        var loader = ModuleLoader(journal: nil, allowsOtherToolchains: true, scheme: RoutePattern.unknownScheme)
        loader.ignoresSeals = true
        let module = try loader.check(description, staged)
        if let types = outcome.typedManifest { try module.checkTypes(types) }
        return ManifestSeal(
            abiMinor: module.abiMinor, toolchain: module.toolchain, manifest: module.manifestText,
            typedManifest: outcome.typedManifest)
    }

    /// Opens a staged file in a scan process; `nil` if it does not pass, or no such process can be started.
    private static func scan(
        _ staged: StagedFile, _ timeout: Duration
    ) throws(PluginError) -> (ScanProcess.Outcome, UnsafePointer<plugin_module>)? {
        guard let outcome = scan(staged, HostConfiguration(folders: []), .description, timeout),
            let description = outcome.description
        else { return nil }
        return (outcome, description)
    }

    /// Derives the types of the module in a staged file, in a scan process.
    ///
    /// - Parameter timeout: How long the constructors, the entry function or the derivation may take.
    /// - Returns: The manifest with types, unchecked; `nil` if there are none.
    /// - Throws: `openFailed` if the process cannot be started, or fails.
    static func derivedTypes(
        _ staged: StagedFile, _ configuration: HostConfiguration, _ timeout: Duration
    ) throws(PluginError) -> String? {
        guard let outcome = scan(staged, configuration, .types, timeout), outcome.ending == .exited(0) else {
            throw PluginError(
                .openFailed,
                "The types of \(staged.original) are not known: the process that derives them cannot be started, or its code "
                    + "crashes or takes too long. 'pluginhost inspect' says more.")
        }
        return outcome.typedManifest
    }

    private static func scan(
        _ staged: StagedFile, _ configuration: HostConfiguration, _ details: ScanProcess.Details, _ timeout: Duration
    ) -> ScanProcess.Outcome? {
        let workers = Workers(configuration) { _ in nil }
        guard let program = try? workers.program(for: staged) else { return nil }
        return retrying(within: timeout) { limit, without in
            try? ScanProcess.run([staged], program: program, limit: limit, details: details, without: without)
        }
    }

    private static func report(
        _ module: LoadedModule, _ staged: StagedFile, _ file: String
    ) throws(PluginError) -> ModuleReport {
        let json: Value = [
            "file": .string(file), "elf": try elf(staged),
            "abi": ["major": .int(Int(PLUGIN_ABI_MAJOR)), "minor": .int(Int(module.abiMinor))],
            "toolchain": module.toolchain.isEmpty ? nil : .string(module.toolchain),
            "manifest": try Value(json: module.manifestText),
        ]
        return ModuleReport(json, module)
    }

    private static func elf(_ staged: StagedFile) throws(PluginError) -> Value {
        let image = staged.image
        let exports = try exports(of: staged)
        return [
            "size": .int(staged.size), "mapped": .int(image.mappedSize),
            "soname": image.soname.map(Value.string) ?? nil, "buildID": image.buildID.map(Value.string) ?? nil,
            "needed": .list(image.needed.map(Value.string)), "runpath": .list(image.runpath.map(Value.string)),
            "staged": .list(staged.libraries.map(Value.string)),
            "exports": .list(exports.names.map(Value.string)), "swiftExports": .int(exports.swiftCount),
        ]
    }

    /// Returns the exported symbols that a module is not expected to export.
    private static func exports(of staged: StagedFile) throws(PluginError) -> ELFExports {
        let file = try MappedFile(staged.path)
        return try ELFImage.exports(of: file.bytes, path: staged.original)
    }
}
