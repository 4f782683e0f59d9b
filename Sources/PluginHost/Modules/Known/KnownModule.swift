import PluginABI
import PluginFile

// What is known of a module without opening its file.

extension ChangeContext {
    /// Returns the module in a file if its seal contains enough to register it: the file is then opened when the module
    /// is needed. `nil` if the file must be opened immediately, for instance because the seal is not valid, which is
    /// then reported.
    func knownModule(in file: StagedFile) -> LoadedModule? {
        guard configuration.start == .lazy, let seal = file.image.seal,
            seal.isEmbedded || runs(seal.toolchain, file)
        else { return nil }
        return knownModule(in: file, KnownText(seal.manifest), toolchain: seal.toolchain, abiMinor: seal.abiMinor)
    }

    /// - Parameter file: The stand-in for the copy of the file, which does not exist.
    private func knownModule(
        in file: StagedFile, _ text: KnownText, toolchain: String, abiMinor: UInt16
    ) -> LoadedModule? {
        let parsed = text.withBytes { try? ModuleManifest(parsing: $0, abiMinor: abiMinor) }
        guard let manifest = parsed, mayRest(manifest, file),
            let routes = try? manifest.routeEntries(scheme: configuration.firstScheme)
        else { return nil }
        return LoadedModule(
            known: file, toolchain: toolchain, abiMinor: abiMinor, manifest: manifest, text: { text.string },
            routes: routes, program: calls.program)
    }

    /// Whether a module need not start before it is needed.
    private func mayRest(_ manifest: ModuleManifest, _ file: StagedFile) -> Bool {
        guard !configuration.eagerModules.contains(manifest.name), serving.modules[manifest.name] == nil,
            hasPermissions(manifest, file)
        else { return false }
        switch manifest.start {
        case .eager: return false
        case .lazy: return true
        case .automatic:
            return !manifest.isExclusive && !manifest.hooks.contains { [.`init`, .didStart].contains($0) }
                && !manifest.events.contains { $0.name.isHostEvent }
        }
    }

    /// Whether a module has what it needs to be served. If not, its file is opened, and then it waits.
    private func hasPermissions(_ manifest: ModuleManifest, _ file: StagedFile) -> Bool {
        guard disk.workers.isolates(manifest.name) else { return manifest.isolation == .optional }
        let rule = disk.workers.rule(for: manifest.name, file)
        return manifest.permissions.allSatisfy { rule.grants($0) }
    }

    /// Whether the Swift runtime that a module needs is that of the host, according to its seal.
    private func runs(_ toolchain: String, _ file: StagedFile) -> Bool {
        toolchain.isEmpty || disk.loader.allowsOtherToolchains || toolchain == Toolchain.current
            || !file.image.needed.contains("libswiftCore.so")
    }
}

// MARK: The registry cache

extension ChangeContext {
    /// Returns the record of a file that an earlier host has read, unless there is a reason not to rely on it; the file
    /// is not opened. `nil` if it must be read.
    func knownRecord(_ path: String, in folder: String, _ identity: FileIdentity) -> FileRecord? {
        guard let known = disk.registry?.file(at: path, identity: identity),
            disk.journal.quarantined(path: path, digest: known.digest) == nil
        else { return nil }
        let record = FileRecord(path: path, folder: folder, identity: identity)
        switch known.outcome {
        case .failure(let error):
            guard !configuration.retriesQuarantined else { return nil }
            return record.with(.failed(error, nil))
        case .module(let facts):
            guard configuration.start == .lazy,
                facts.libraries.allSatisfy({ FileIdentity(path: $0.path) == $0.identity }),
                let module = knownModule(
                    in: StagedFile(known: known, facts), facts.manifest, toolchain: facts.toolchain,
                    abiMinor: facts.abi.minor)
            else { return nil }
            return record.with(.module(.init(module: module)))
        }
    }

    /// Records for later hosts what this one knows about files.
    func recordKnown() {
        guard let registry = disk?.registry else { return }
        for record in folders.records.values {
            if let known = record.known(withCulprits: disk.scan != nil) {
                registry.record(known, isFleeting: record.isFleeting)
            }
        }
        if folders.problems.isEmpty { registry.forgetAll(besides: Set(folders.records.keys)) }
        registry.write()
    }

    /// Records what is known when there have been no changes for a while.
    func recordKnownLater() {
        guard configuration.watches, disk.registry != nil, !isRecordScheduled else { return }
        isRecordScheduled = true
        later(after: .seconds(2)) { context in
            context.isRecordScheduled = false
            context.recordKnown()
        }
    }
}

extension FileRecord {
    /// The knowledge about the file that later hosts may use; `nil` if they must read it again.
    ///
    /// - Parameter withCulprits: Whether a file that has crashed or hung has done so in a scan process.
    fileprivate func known(withCulprits: Bool) -> KnownFile? {
        guard let identity else { return nil }
        switch content {
        // A library is a module's only as long as that module is there.
        case .beingWritten, .quarantined, .library: return nil
        case .failed(let error, let module):
            guard module?.isOpen != true, error.isOfContent(of: path, withCulprits: withCulprits), !bringsLibraries
            else { return nil }
            return KnownFile(path: path, identity: identity, digest: 0, outcome: .failure(error))
        case .module(let loaded):
            let module = loaded.module
            guard module.isOfFile else { return nil }
            var libraries: [KnownFile.Library] = []
            for library in module.staged.libraries {
                guard let identity = FileIdentity(path: library), !identity.isRecent else { return nil }
                libraries.append(.init(path: library, identity: identity))
            }
            let facts = KnownFile.ModuleFacts(
                name: module.name, version: module.manifest.version.description,
                abi: .init(major: UInt16(PLUGIN_ABI_MAJOR), minor: module.abiMinor), toolchain: module.toolchain,
                manifest: KnownText(module.manifestText), index: KnownText(""), libraries: libraries)
            return KnownFile(path: path, identity: identity, digest: module.staged.digest, outcome: .module(facts))
        }
    }
}

extension FileRecord {
    /// Whether the file finds libraries through `$ORIGIN`, any of which may be the reason why it fails.
    private var bringsLibraries: Bool {
        guard let bytes = try? SourceFile(opening: path).contents(limit: 1 << 26) else { return true }
        let image = bytes.withUnsafeBytes { try? ELFImage(reading: $0, path: path) }
        guard let image else { return false }
        return image.runpath.contains { $0.contains("ORIGIN") }
    }
}

extension PluginError {
    /// Whether the error follows from the content of a file alone, so that it lasts until the file changes.
    fileprivate func isOfContent(of path: String, withCulprits: Bool) -> Bool {
        switch code {
        case .invalidFile, .invalidDescription, .invalidManifest, .incompatible, .sealMismatch: message.contains(path)
        case .moduleCrashed, .deadlineExceeded: withCulprits
        default: false
        }
    }
}

extension StagedFile {
    /// A substitute for the copy of a file that is known.
    fileprivate init(known file: KnownFile, _ facts: KnownFile.ModuleFacts) {
        self.init(
            path: "", original: file.path, identity: file.identity, digest: file.digest, size: Int(file.identity.size),
            image: .program, folder: "", libraries: facts.libraries.map(\.path))
    }
}
