import PluginABI
import PluginFile

// What is known of a module without opening its file.

extension ChangeContext {
    /// Returns the module in a file that is sealed and need not be copied, if it may be registered.
    func sealedModule(at path: String) -> LoadedModule? {
        guard configuration.start == .lazy,
            let file = disk.staging.readSealed(path: path, checkTrust: !configuration.trustsEveryone),
            disk.journal.quarantined(path: path, digest: file.digest) == nil
        else { return nil }
        return knownModule(in: file)
    }

    /// Returns the module in a file if its seal contains enough to register it: the file is then opened when the module
    /// is needed. `nil` if the file must be opened immediately, for instance because the seal is not valid, which is
    /// then reported.
    func knownModule(in file: StagedFile) -> LoadedModule? {
        guard configuration.start == .lazy, let seal = file.image.seal,
            seal.isEmbedded || runs(seal.toolchain, file)
        else { return nil }
        guard let known = KnownManifest(KnownText(seal.manifest), abiMinor: seal.abiMinor),
            serving.modules[known.outline.name] == nil
        else { return nil }
        return disk.registrar.module(in: file, known, toolchain: seal.toolchain, abiMinor: seal.abiMinor)
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
        guard let registry = disk.registry else { return nil }
        var record = registry.preparedRecord(path, identity: identity)
        if record?.folder.hasBytes(of: folder) != true {
            guard let file = registry.find(path, identity: identity) else { return nil }
            // Without modules to register, nothing is prepared.
            if configuration.start != .lazy, case .module = file.outcome { return nil }
            guard file.libraries.allSatisfy({ FileIdentity(path: $0.path) == $0.identity }) else { return nil }
            record = disk.registrar.record(of: file, in: folder)
        }
        guard let record else { return nil }
        // Most starts need nothing of the module here, and reading what another thread has just created is slow.
        if serving.modules.isEmpty, disk.journal.quarantinedFiles.isEmpty, !configuration.retriesQuarantined {
            return record
        }
        let module = record.module
        guard disk.journal.quarantined(path: path, digest: module?.staged.digest ?? 0) == nil else { return nil }
        if let module { return serving.modules[module.name] == nil ? record : nil }
        return configuration.retriesQuarantined ? nil : record
    }

    /// Records for later hosts what this one knows about files.
    func recordKnown() {
        guard let registry = disk?.registry else { return }
        for record in folders.records.values {
            let before = record.identity.flatMap { registry.find(record.path, identity: $0) }
            if let known = record.known(withCulprits: disk.scan != nil, before) {
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
    /// - Parameters:
    ///   - withCulprits: Whether a file that has crashed or hung has done so in a scan process.
    ///   - before: What is recorded about the file.
    fileprivate func known(withCulprits: Bool, _ before: KnownFile?) -> KnownFile? {
        guard let identity else { return nil }
        switch content {
        // A library belongs to a module only as long as that module exists.
        case .beingWritten, .quarantined, .library: return nil
        case .failed(let error, let module):
            guard module?.isOpen != true, error.isOfContent(of: path, withCulprits: withCulprits), !bringsLibraries
            else { return nil }
            return KnownFile(path: path, identity: identity, digest: 0, outcome: .failure(error))
        case .module(let loaded):
            let module = loaded.module
            guard module.isOfFile else { return nil }
            if !module.isOpen, let before { return before }
            var libraries: [KnownFile.Library] = []
            for library in module.staged.libraries {
                guard let identity = FileIdentity(path: library), !identity.isRecent else { return nil }
                libraries.append(.init(path: library, identity: identity))
            }
            let text = KnownText(module.manifestText)
            let index: KnownText
            if case .module(let facts)? = before?.outcome, facts.manifest == text {
                index = facts.index
            } else {
                index = KnownText(module.manifest.index)
            }
            let facts = KnownFile.ModuleFacts(
                abi: .init(major: UInt16(PLUGIN_ABI_MAJOR), minor: module.abiMinor), toolchain: module.toolchain,
                manifest: text, index: index, libraries: libraries)
            return KnownFile(path: path, identity: identity, digest: module.staged.digest, outcome: .module(facts))
        }
    }
}

extension ModuleManifest {
    /// The outline as bytes; none if a route is dead, so that the reason can be found when the manifest is read.
    fileprivate var index: [UInt8] {
        guard let dead = try? deadRoutes(), dead.isEmpty else { return [] }
        return ModuleOutline(self).bytes ?? []
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
