import Foundation
import Synchronization
import Testing

@testable import PluginHost

@Suite struct FolderWatcherTests {
    /// What a watcher has told.
    final class Changes: Sendable {
        private let folders = Mutex<[String]>([])

        func add(_ changed: Set<String>) { folders.withLock { $0 += changed } }
        func forget() { folders.withLock { $0 = [] } }
        func contain(_ folder: String) -> Bool { folders.withLock { $0.contains(folder) } }
        var isEmpty: Bool { folders.withLock { $0.isEmpty } }
    }

    let folder: TemporaryFolder
    let changes = Changes()

    init() throws { folder = try TemporaryFolder() }

    private func watch(_ folders: String...) -> FolderWatcher {
        let watcher = FolderWatcher(folders: folders) { [changes] in changes.add($0) }
        watcher.start()
        return watcher
    }

    @Test func `A file that is renamed into the folder is told`() throws {
        let (plugins, other) = (try folder.folder("plugins"), try folder.folder("other"))
        let file = try folder.file("other/a.so")
        let watcher = watch(plugins, other)
        defer { watcher.stop() }
        rename(file, "\(plugins)/a.so")
        #expect(eventually { changes.contain(plugins) && changes.contain(other) })
        #expect(watcher.problem == nil)
    }

    @Test func `A file that is written is told when it is closed`() throws {
        let plugins = try folder.folder("plugins")
        let watcher = watch(plugins)
        defer { watcher.stop() }
        let descriptor = open("\(plugins)/a.so", O_WRONLY | O_CREAT, 0o644)
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        write(descriptor, "half", 4)
        close(descriptor)
        #expect(eventually { changes.contain(plugins) })
    }

    @Test func `A file that is removed, or whose mode changes, is told`() throws {
        let file = try folder.file("a.so")
        let watcher = watch(folder.path)
        defer { watcher.stop() }
        chmod(file, 0o600)
        #expect(eventually { changes.contain(folder.path) })
        changes.forget()
        unlink(file)
        #expect(eventually { changes.contain(folder.path) })
    }

    @Test func `Other names are not told`() throws {
        let (plugins, last) = (try folder.folder("plugins"), try folder.folder("last"))
        let watcher = watch(plugins, last)
        defer { watcher.stop() }
        for name in [".a.so", "a.so.tmp", "readme"] { try folder.file("plugins/\(name)") }
        // Events come in order: when this one is told, those before were ignored.
        try folder.file("last/a.so")
        #expect(eventually { changes.contain(last) })
        #expect(!changes.contain(plugins))
    }

    @Test func `A folder that vanishes and returns is told and watched again`() throws {
        let plugins = try folder.folder("plugins")
        let watcher = watch(plugins)
        defer { watcher.stop() }
        try FileManager.default.removeItem(atPath: plugins)
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        try folder.folder("plugins")
        #expect(eventually { changes.contain(plugins) })
        changes.forget()
        try folder.file("plugins/a.so")
        #expect(eventually { changes.contain(plugins) })
    }

    @Test func `A folder that does not exist yet is told when it does`() throws {
        let plugins = "\(folder.path)/later"
        let watcher = watch(plugins)
        defer { watcher.stop() }
        try folder.folder("later")
        #expect(eventually { changes.contain(plugins) })
    }

    @Test func `A folder that is replaced is watched in its new place`() throws {
        let (one, two) = (try folder.folder("one"), try folder.folder("two"))
        let link = "\(folder.path)/plugins"
        symlink(one, link)
        let watcher = watch(link)
        defer { watcher.stop() }
        symlink(two, "\(link).new")
        rename("\(link).new", link)
        #expect(eventually { changes.contain(link) })
        changes.forget()
        try folder.file("two/a.so")
        #expect(eventually { changes.contain(link) })
    }

    @Test func `Nothing is told after stop, and again after the next start`() throws {
        let watcher = watch(folder.path)
        watcher.stop()
        watcher.stop()
        try folder.file("a.so")
        watcher.start()
        #expect(changes.isEmpty)
        try folder.file("b.so")
        #expect(eventually { changes.contain(folder.path) })
        watcher.stop()
    }

    @Test func `A callback can stop its watcher`() throws {
        let box = Mutex<FolderWatcher?>(nil)
        let watcher = FolderWatcher(folders: [folder.path]) { [changes] in
            box.withLock { $0 }?.stop()
            changes.add($0)
        }
        box.withLock { $0 = watcher }
        watcher.start()
        try folder.file("a.so")
        #expect(eventually { !changes.isEmpty })
        watcher.stop()
        box.withLock { $0 = nil }
    }
}
