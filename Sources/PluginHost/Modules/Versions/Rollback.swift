import FoundationEssentials
import Glibc
import PluginABI
import PluginFile

/// A rollback of a module: puts a version back into its plugins folder.
struct Rollback {
    let context: ChangeContext
    let name: String
    let force: Bool
    let dryRun: Bool

    /// The version to put back.
    fileprivate struct Return {
        let module: LoadedModule
        /// The path at which the file is put back.
        let path: String
        /// The plugins folder of the path.
        let folder: String
        /// The kept version; `nil` for the version that serves, which the rollback keeps itself.
        let kept: KeptVersion?
    }

    private var configuration: HostConfiguration { context.configuration }
    private var store: VersionStore { context.disk.store }
    private var served: Served? { context.serving.modules[name] }

    /// Makes the rollback, or only plans it.
    ///
    /// - Parameter wanted: The version to put back; `nil` for the previous one.
    func make(to wanted: String?) throws(PluginError) -> PlannedChange {
        context.update()
        let served = served
        if let served, let returning = broken(served), wanted == nil || wanted == "\(served.version)" {
            return try bring(returning)
        }
        let files = try FileMove.files(of: name, in: context)
        let present = served?.module ?? context.registry.table.contents.known.module(named: name)
        let candidates = store.kept(name, for: configuration).filter {
            $0.version.digest != present?.staged.digest
        }
        if let (kept, path) = candidates.first(where: { wanted == nil || wanted == "\($0.version.version)" }) {
            return try bring(load(kept, as: path))
        }
        if let wanted {
            let versions = candidates.map(\.version.version.description).joined(separator: ", ")
            throw PluginError(
                .noVersionKept,
                "There is no kept version \(wanted.shortened) of \(name.shortened) to put back; kept: "
                    + "\(versions.isEmpty ? "none" : versions).\(store.sentenceOnLeftOut(name))"
            )
        }
        let serving = files.filter { file in served.map { Plan.isSame($0.module, file.module) } == true }
        let move = FileMove(context: context, name: name, files: serving)
        let change = move.plan
        guard !serving.isEmpty, change.starting.contains(where: { $0.name == name }) else {
            throw PluginError(
                .noVersionKept,
                "No version of \(name.shortened) is kept\(served.map { " besides \($0.version), which serves" } ?? "")"
                    + ", and none in the folder could take over.\(store.sentenceOnLeftOut(name))")
        }
        if !force { try change.requireNoDependents("rolled back") }
        if !dryRun { try move.make() }
        return change
    }

    /// Returns the version that serves if no file contains it, because its file was replaced by content that cannot be
    /// served.
    private func broken(_ served: Served) -> Return? {
        guard served.module.isOfFile, let record = context.folders.records[served.path],
            !context.folders.records.values.contains(where: {
                $0.claimedModule.map { Plan.isSame($0, served.module) } == true
            })
        else { return nil }
        return Return(module: served.module, path: served.path, folder: record.folder, kept: nil)
    }

    /// Opens a kept version to read its manifest.
    private func load(_ kept: KeptVersion, as path: String) throws(PluginError) -> Return {
        // The folder is as deep as the paths of libraries (`../lib/libbar.so`) may lead up.
        let (staging, journal, loader) = (context.disk.staging, context.disk.journal, context.disk.loader)
        let folder = "\(staging.path)/rollback/1/2/3/4/5/6/7/8"
        defer { try? FileManager.default.removeItem(atPath: "\(staging.path)/rollback") }
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        do throws(PluginError) {
            try store.restore(kept, to: folder)
            let staged = try staging.stageWhenWritten(
                path: "\(folder)/\(kept.fileName)", checkTrust: false, as: path)
            do throws(PluginError) {
                // A file that is only a suspect may be tried again, since the rollback was requested explicitly.
                if let entry = journal.quarantined(path: path, digest: staged.digest), entry.isSuspected != true {
                    throw PluginError(
                        .quarantined,
                        "\(entry.message) The file is not opened again unless the host is started with --retry.")
                }
                let findings = context.disk.workers.isolates(kept.module) ? nil : context.disk.scan?.open([staged])
                if let failure = findings?.failures[staged.number] {
                    staging.discard(staged)
                    throw failure
                }
                let name = findings?.names[staged.number] ?? kept.module
                let module = try loader.load(staged, of: name)
                guard module.outline.name == kept.module else {
                    throw PluginError(
                        .conflict,
                        "The file kept at \(kept.path) contains the module \(module.outline.name.shortened), not "
                            + "\(kept.module). Put another version back (pluginhost versions \(kept.module)), or copy "
                            + "the right file into the plugins folder.")
                }
                return Return(module: module, path: path, folder: plugins(of: path), kept: kept)
            } catch {
                if error.code == .openFailed || error.code == .quarantined { staging.discard(staged) }
                throw error
            }
        } catch {
            throw PluginError(
                error.code, "\(kept.module) \(kept.version) is not put back: \(error.message)", source: error.source)
        }
    }

    /// Returns the plugins folder of a file, as it is given in the configuration.
    private func plugins(of path: String) -> String {
        let folder = path.parentFolder
        let folders = configuration.folders.map { (given: $0, name: $0.droppingSlashes) }
        let own = folders.first { folder.hasBytes(of: $0.name) }
        let above = folders.filter { folder.beginsWithBytes(of: "\($0.name)/") }.max { $0.name.count < $1.name.count }
        return (own ?? above)?.given ?? ""
    }

    private func bring(_ returning: Return) throws(PluginError) -> PlannedChange {
        let version = returning.module.outline.version
        let served = served
        var records = context.folders.records
        if let other = records[returning.path]?.claimedModule?.outline.name, other != name {
            throw PluginError(
                .conflict, "\(name) \(version) is not put back: \(returning.path) contains \(other). Move that file.")
        }
        records[returning.path] = FileRecord(returning)
        let present = context.folders.files(holding: name)
        // The version would not serve if a file with the same or a higher version remained, or a file whose content
        // cannot replace what was loaded from it.
        let moved = present.filter { file in
            let isInTheWay = served.map { $0.path == file.path && !Plan.isSame($0.module, file.module) } ?? false
            return file.path != returning.path
                && (isInTheWay
                    || file.module.outline.version >= version && !Plan.isSame(file.module, returning.module))
        }
        for file in moved { records[file.path] = nil }
        let plan = context.plan(with: records)
        let change = PlannedChange(
            of: name, moving: moved.map(\.path), restoring: returning.path, plan, context)
        guard plan.serving.contains(where: { Plan.isSame($0.module, returning.module) }) else {
            let reason = plan.verdicts[returning.path]?.error?.message ?? "another module takes precedence."
            throw PluginError(.conflict, "\(name) \(version) is not put back, since it would not serve: \(reason)")
        }
        if !force { try change.requireNoDependents("rolled back") }
        if !dryRun {
            try putBack(returning, moving: moved, replacing: present.first { $0.path.hasBytes(of: returning.path) })
        }
        return change
    }

    /// Keeps the versions that are replaced, puts the other version back, and starts it. If that fails, everything is
    /// undone.
    private func putBack(
        _ returning: Return, moving moved: [LoadedFile], replacing replaced: LoadedFile?
    ) throws(PluginError) {
        let folder = returning.path.parentFolder
        let keeping = VersionRetention(context: context)
        let kept: KeptVersion
        if let known = returning.kept {
            kept = known
        } else {
            try keeping.keep(returning.module, of: returning.path)
            let all = store.kept(name, for: configuration)
            guard let new = all.first(where: { $0.version.digest == returning.module.staged.digest }) else {
                throw PluginError(.unreadable, "\(name) was kept, but cannot be read from the kept versions.")
            }
            kept = new.version
        }
        let served = served
        let new = kept.files.map { (PathKey("\(folder)/\($0.path)"), $0.digest) }
        let aside = try SetAside(
            Set(paths: moved.map(\.path) + new.map(\.0.path) + [returning.path]).sorted().map(\.path),
            newDigests: Dictionary(new, uniquingKeysWith: { $1 }))
        var isThere = false
        do throws(PluginError) {
            // The version that serves is kept last, so that it becomes the previous version.
            let leaving = (moved + [replaced].compactMap(\.self)).sorted { left, _ in left.module !== served?.module }
            for file in leaving { try keeping.keep(file.module, of: file.path, sparing: kept) }
            try store.restore(kept, to: folder)
            isThere = true
            for file in moved { try FileMove.delete(file.path) }
            if returning.kept != nil {
                context.folders.put(FileRecord(returning))
                // If the host survives the start, the file is no longer a suspect.
                context.folders.tried.insert(returning.path)
            }
            updateUntilWritten(returning.path)
            guard let now = self.served?.module, Plan.isSame(now, returning.module) else {
                throw context.folders.records[returning.path]?.error ?? PluginError(.conflict, "Another file serves.")
            }
            aside.discard()
        } catch {
            aside.putBack()
            context.patiently { context.update() }
            throw PluginError(
                error.code,
                "\(name) \(kept.version) \(isThere ? "was put back, but does not start" : "is not put back"). The "
                    + "files are as before"
                    + "\(served.map { ", and \($0.version) continues to serve" } ?? ""): \(error.message)",
                source: error.source)
        }
    }

    /// Scans the folders again until the file is no longer being written, for at most a second.
    private func updateUntilWritten(_ path: String) {
        for _ in 0..<50 {
            context.patiently { context.update() }
            guard context.folders.records[path]?.isAwaited == true else { return }
            usleep(20_000)
        }
    }
}

extension FileRecord {
    /// Creates the record of the file as it will be after the rollback; the next scan completes it.
    fileprivate init(_ returning: Rollback.Return) {
        self.init(
            path: returning.path, folder: returning.folder, identity: nil,
            content: .module(.init(module: returning.module)))
    }
}
