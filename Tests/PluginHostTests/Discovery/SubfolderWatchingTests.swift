import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Links, and subfolders of plugins folders. The watchers of these tests do not check folders themselves: they report
/// only what the kernel has reported.
@Suite struct SubfolderWatchingTests {
    let folder: TemporaryFolder
    let changes = WatcherChanges()

    init() throws { folder = try TemporaryFolder() }

    private func watch(
        _ folders: String..., recursive: Bool = true, quietTime: Duration = .milliseconds(5)
    ) -> FolderWatcher {
        let watcher = FolderWatcher(
            folders: folders, includesSubfolders: recursive, quietTime: quietTime, lookInterval: .seconds(3600)
        ) { [changes] in changes.add($0.folders) }
        watcher.start()
        return watcher
    }

    @Test func `A link that is switched to another file is reported at once, by its rename`() throws {
        let plugins = try folder.folder("plugins")
        for version in ["1.2", "1.3"] { try folder.file("M-\(version)") }
        symlink("../M-1.2", "\(plugins)/M.so")
        let watcher = watch(plugins, recursive: false)
        defer { watcher.stop() }
        #expect(watcher.problem == nil)
        symlink("../M-1.3", "\(folder.path)/new")
        rename("\(folder.path)/new", "\(plugins)/M.so")
        #expect(eventually { changes.contain(plugins) })
    }

    @Test func `Files in subfolders are reported only if subfolders are searched`() throws {
        let (plugins, flat) = (try folder.folder("plugins"), try folder.folder("flat"))
        try folder.folder("plugins/a/b")
        try folder.folder("flat/a")
        let other = WatcherChanges()
        let single = FolderWatcher(folders: [flat]) { other.add($0.folders) }
        single.start()
        defer { single.stop() }
        let watcher = watch(plugins)
        defer { watcher.stop() }
        try folder.file("plugins/a/b/M.so")
        try folder.file("flat/a/M.so")
        #expect(eventually { changes.contain(plugins) })
        // A rename is one event; a file that is written in place is reported once or several times.
        #expect(rename(try folder.file("M.so"), "\(flat)/M.so") == 0)
        #expect(eventually { other.contain(flat) })
        #expect(other.count == 1)
    }

    @Test func `Subfolders that are created, moved in, moved out and renamed are followed`() throws {
        let plugins = try folder.folder("plugins")
        let watcher = watch(plugins)
        defer { watcher.stop() }
        func isTold(_ change: () throws -> Void) rethrows -> Bool {
            changes.forget()
            try change()
            return eventually { changes.contain(plugins) }
        }
        // The file is touched several times, since the first report may still be about the previous change.
        func isWatched(_ path: String) throws -> Bool {
            try (0..<5).allSatisfy { number in try isTold { try folder.file("plugins/\(path)/\(number).so") } }
        }
        #expect(try isTold { try folder.folder("plugins/a/b/c") })
        #expect(try isWatched("a/b/c"))
        try folder.folder("elsewhere/d/e")
        #expect(isTold { rename("\(folder.path)/elsewhere/d", "\(plugins)/d") })
        #expect(try isWatched("d/e"))
        #expect(isTold { rename("\(plugins)/d", "\(plugins)/f") })
        #expect(try isWatched("f/e"))
        #expect(isTold { rename("\(plugins)/f", "\(folder.path)/gone") })
        #expect(try isTold { try FileManager.default.removeItem(atPath: "\(plugins)/a") })
    }

    @Test func `A folder that is moved in with its contents is one change`() throws {
        let plugins = try folder.folder("plugins")
        try folder.folder("new/below")
        for number in 0..<100 { try folder.file("new/below/\(number).so") }
        let watcher = watch(plugins, quietTime: .zero)
        rename("\(folder.path)/new", "\(plugins)/new")
        #expect(eventually { !changes.isEmpty })
        watcher.stop()
        #expect(changes.count == 1)
    }

    @Test func `A link that is switched to another folder is reported, and the files there are watched`() throws {
        let plugins = try folder.folder("plugins")
        for version in ["1.2", "1.3"] { try folder.folder(version) }
        symlink("../1.2", "\(plugins)/current")
        let watcher = watch(plugins)
        defer { watcher.stop() }
        try folder.file("1.2/M.so")
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        symlink("../1.3", "\(folder.path)/new")
        rename("\(folder.path)/new", "\(plugins)/current")
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        try folder.file("1.3/M.so")
        #expect(eventually { changes.contain(plugins) })
    }

    @Test func `Hidden subfolders and their contents are not reported`() throws {
        let plugins = try folder.folder("plugins")
        try folder.folder("plugins/.git")
        let watcher = watch(plugins, quietTime: .zero)
        defer { watcher.stop() }
        try folder.file("plugins/.git/M.so")
        try folder.folder("plugins/.new")
        try folder.file("plugins/.new/M.so")
        // Events arrive in order: when this change is reported, the earlier ones were ignored.
        rename(try folder.file("M"), "\(plugins)/M.so")
        #expect(eventually { changes.contain(plugins) })
        #expect(changes.count == 1)
    }
}
