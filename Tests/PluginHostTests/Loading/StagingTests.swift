import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

@Suite struct StagingTests {
    let folder: TemporaryFolder
    let staging: Staging
    let plugins: String

    init() throws {
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
        staging = try Staging(base: "\(folder.path)/staging")
    }

    @Test func `A module is copied under its own name, to a folder that only its user can enter`() throws {
        let original = try folder.copy(CFixture.build(CFixture.entry), as: "plugins/a.so")
        let file = try stage(original)
        #expect(file.original == original && file.path.fileName == "a.so" && file.image.exportsEntry)
        #expect(FileManager.default.contentsEqual(atPath: original, andPath: file.path))
        #expect(try mode(file.path) == 0o500)
        #expect(try file.folder == nil && mode(file.path.parentFolder) == 0o700)
        #expect(try mode(staging.path) == 0o700)
        #expect(try Data(contentsOf: URL(fileURLWithPath: original)).count == file.size)
        #expect(dlopen(file.path, RTLD_NOW | RTLD_LOCAL) != nil)
    }

    /// Swift's backtraces show this name.
    @Test(arguments: ["", "/../lib"])
    func `The name of the copy contains no character that a terminal acts on`(up: String) throws {
        let shown = "libshown-\(mark).so"
        let library = try CFixture.build("int x;", ["-Wl,-soname,\(shown)"], name: shown)
        try folder.folder("lib")
        try folder.copy(library, as: up.isEmpty ? "plugins/\(shown)" : "lib/\(shown)")
        let module = try CFixture.build(
            CFixture.entry, ["-Wl,--no-as-needed", library, "-Wl,-rpath,$ORIGIN\(up)"])
        let original = try folder.copy(module, as: "plugins/\u{1B}]0;é\u{7}\u{9B}2J\u{202E}.so")
        let file = try stage(original)
        #expect(file.original == original && file.libraries.count == 1)
        let own = try #require(file.folder)
        #expect(file.path == "\(own)/\(up.isEmpty ? "" : "plugins/")_]0;é__2J_.so")
        #expect(FileManager.default.contentsEqual(atPath: original, andPath: file.path))
        #expect(dlopen(file.path, RTLD_NOW | RTLD_LOCAL) != nil)
    }

    @Test func `Copies of the same content have the same digest and bytes, and others do not`() throws {
        let original = try folder.copy(CFixture.build(CFixture.entry), as: "plugins/a.so")
        let other = try folder.copy(CFixture.build(CFixture.entry + "int x = 2;"), as: "plugins/b.so")
        let files = try [stage(original), stage(original), stage(other)]
        #expect(files[0].path != files[1].path && files[0].digest == files[1].digest)
        #expect(try Staging.sameBytes(files[0], files[1]))
        #expect(try !Staging.sameBytes(files[0], files[2]))
    }

    @Test func `Copies share a folder if their originals do and their names differ`() throws {
        let module = try CFixture.build(CFixture.entry)
        try folder.folder("others")
        let paths = try ["plugins/a.so", "plugins/b.so", "others/c.so"].map { try folder.copy(module, as: $0) }
        let files = try (paths + paths).map { try stage($0) }
        let folders = files.map(\.path.parentFolder)
        #expect(folders[0] == folders[1] && Set(folders).count == 5)
        #expect(files.map(\.path.fileName) == ["a.so", "b.so", "c.so", "a.so", "b.so", "c.so"])
        // The path of a copy that was not opened can be used again.
        staging.discard(files[0])
        #expect(!FileManager.default.fileExists(atPath: files[0].path))
        #expect(try stage(paths[0]).path == files[0].path)
        // The dynamic linker takes files with the same path for the same library.
        staging.removeFiles(of: files[1])
        #expect(!FileManager.default.fileExists(atPath: files[1].path))
        #expect(try stage(paths[1]).path != files[1].path)
        // A folder that is not shared is removed with its copy.
        staging.removeFiles(of: files[3])
        #expect(!FileManager.default.fileExists(atPath: folders[3]))
    }

    @Test func `The error for a file that is not regular says what it is, without waiting`() throws {
        mkfifo("\(plugins)/fifo.so", 0o644)
        try folder.folder("plugins/folder.so")
        symlink("/dev/null", "\(plugins)/device.so")
        for (name, kind) in [("fifo", "a FIFO"), ("folder", "a folder"), ("device", "a device")] {
            let error = #expect(throws: PluginError.self) { try stage("\(plugins)/\(name).so") }
            #expect(error?.code == .invalidFile)
            #expect(error?.message.contains("is \(kind), not a regular file") == true)
        }
        try expectNothingLeft()
    }

    @Test func `A file that is missing, a dangling link and a link loop are unreadable`() throws {
        symlink("missing", "\(plugins)/a.so")
        symlink("b.so", "\(plugins)/b.so")
        for name in ["a", "b", "c"] {
            let error = #expect(throws: PluginError.self) { try stage("\(plugins)/\(name).so") }
            #expect(error?.code == .unreadable)
        }
    }

    @Test(arguments: ["a path", "a folder", "a folder, for a library beside it"])
    func `A library elsewhere that others could have written is refused, with the module`(namedBy way: String) throws {
        let libraries = try folder.folder("libraries")
        let library = "\(libraries)/libaway.so"
        try folder.copy(CFixture.build("int away(void) { return 1; }", name: "libaway.so"), as: "libraries/libaway.so")
        // A library without a soname is needed by the path with which it was linked.
        let byFolder = ["-L\(libraries)", "-laway", "-Wl,-rpath,\(libraries)"]
        let flags =
            switch way {
            case "a path": [library]
            case "a folder": byFolder
            default:
                [
                    try folder.copy(
                        CFixture.build("int away(void); int beside(void) { return away(); }", byFolder),
                        as: "plugins/libbeside.so"), "-Wl,-rpath,$ORIGIN", "-Wl,--allow-shlib-undefined",
                ]
            }
        // The module is linked in a separate folder, so that it needs the library beside it by its name.
        let source = CFixture.entry + "int away(void); int use(void) { return away(); }"
        let besides = CFixture.entry + "int beside(void); int use(void) { return beside(); }"
        let isBeside = way.hasSuffix("beside it")
        let linked = isBeside ? ["-L\(plugins)", "-lbeside"] + flags.dropFirst() : flags
        let module = try folder.copy(CFixture.build(isBeside ? besides : source, linked), as: "plugins/a.so")
        staging.discard(try stage(module))
        for (path, mode) in [(library, mode_t(0o666)), (libraries, 0o777), (library, 0o775)] {
            chmod(path, mode)
            let error = #expect(throws: PluginError.self) { try stage(module) }
            #expect(error?.code == .untrusted)
            for words in [module, library, path, "chmod go-w", "--trust"] {
                #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
            }
            staging.discard(try staging.stageWhenWritten(path: module, checkTrust: false))
            chmod(path, 0o755)
        }
        staging.discard(try stage(module))
        // A missing library is only noticed when a module that needs it is opened.
        unlink(library)
        _ = try stage(module)
    }

    @Test func `A library that one file finds by an absolute path, and another one beside itself, is copied`() throws {
        let name = "libboth-\(UInt32.random(in: 0 ... .max)).so"
        let both = try folder.copy(CFixture.build("int both(void) { return 1; }", name: name), as: "plugins/\(name)")
        let link = ["-L\(plugins)", "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"]
        for (file, path) in [("libone.so", plugins), ("libtwo.so", "$ORIGIN")] {
            let library = try CFixture.build("", link + ["-l:\(name)", "-Wl,-rpath,\(path)"], name: file)
            try folder.copy(library, as: "plugins/\(file)")
        }
        let module = try folder.copy(
            CFixture.build(CFixture.entry, link + ["-l:libone.so", "-l:libtwo.so", "-Wl,-rpath,$ORIGIN"]),
            as: "plugins/a.so")
        let staged = try stage(module)
        #expect(staged.libraries == ["\(plugins)/libone.so", "\(plugins)/libtwo.so", both])
    }

    @Test func `A file that others can write is refused, unless trust is not checked`() throws {
        let original = try folder.copy(CFixture.build(CFixture.entry), as: "plugins/a.so")
        chmod(original, 0o666)
        let error = #expect(throws: PluginError.self) { try stage(original) }
        #expect(error?.code == .untrusted)
        try expectNothingLeft()
        _ = try stage(original, checkTrust: false)
    }

    @Test func `A file that is not a module leaves nothing behind`() throws {
        for content in ["", "text"] {
            let path = try folder.file("plugins/a.so", Data(content.utf8))
            #expect(throws: PluginError.self) { try stage(path) }
        }
        let library = try folder.copy(CFixture.build("int x;"), as: "plugins/b.so")
        let error = #expect(throws: PluginError.self) { try stage(library) }
        #expect(error?.message.contains("plugin_module_entry") == true)
        try expectNothingLeft()
    }

    @Test func `A file that is open for writing counts as being written`() throws {
        let original = try folder.copy(CFixture.build(CFixture.entry), as: "plugins/a.so")
        let descriptor = open(original, O_RDWR | O_CLOEXEC)
        guard try staging.stage(path: original, checkTrust: true) == nil else {
            close(descriptor)
            withKnownIssue("this file system has no leases") { Issue.record("not found") }
            return
        }
        let error = #expect(throws: PluginError.self) { try staging.stageWhenWritten(path: original, checkTrust: true) }
        #expect(error?.code == .unreadable && error?.message.contains("is being written") == true)
        try expectNothingLeft()
        close(descriptor)
        _ = try stage(original)
    }

    @Test func `Libraries that are found through $ORIGIN are copied to the same relative paths, with their own`()
        throws
    {
        try buildFamily(value: 7)
        let file = try stage("\(plugins)/main.so")
        #expect(file.libraries == ["\(plugins)/sub/libone-\(mark).so", "\(plugins)/sub/deep/libtwo-\(mark).so"])
        #expect(try call(file) == 7)
    }

    @Test func `A library in a folder beside the module's is found by the copy of the module`() throws {
        let library = try CFixture.build("int up(void) { return 5; }", ["-Wl,-soname,libup.so"], name: "libup.so")
        try folder.folder("lib")
        try folder.copy(library, as: "lib/libup.so")
        let module = try CFixture.build(
            "int up(void); void *plugin_module_entry(void) { return (void *)(long)up(); }",
            [library, "-Wl,-rpath,${ORIGIN}/../lib"])
        let original = try folder.copy(module, as: "plugins/m.so")
        let file = try stage(original)
        #expect(try file.path == "\(#require(file.folder))/plugins/m.so")
        #expect(try call(file) == 5)
    }

    @Test func `A library that others can write is refused like a module`() throws {
        try buildFamily(value: 7)
        chmod("\(plugins)/sub/libone-\(mark).so", 0o666)
        let error = #expect(throws: PluginError.self) { try stage("\(plugins)/main.so") }
        #expect(error?.code == .untrusted)
        #expect(error?.message.contains("libone-") == true)
    }

    @Test func `The folder that a link leads to, and that of a library, are checked as well`() throws {
        let open = try folder.folder("open", mode: 0o777)
        let module = try folder.copy(CFixture.build(CFixture.entry), as: "open/a.so")
        symlink(module, "\(plugins)/a.so")
        let error = #expect(throws: PluginError.self) { try stage("\(plugins)/a.so") }
        #expect(error?.code == .untrusted && error?.message.contains("\(open) has mode 0777") == true)
        _ = try stage("\(plugins)/a.so", checkTrust: false)
        chmod(open, 0o755)
        _ = try stage("\(plugins)/a.so")
        try buildFamily(value: 7)
        chmod("\(plugins)/sub", 0o777)
        #expect(throws: PluginError.self) { try stage("\(plugins)/main.so") }
    }

    @Test func `A library with the same name as another one is a conflict until the other is discarded`() throws {
        try buildFamily(value: 7)
        let first = try stage("\(plugins)/main.so")
        _ = try stage("\(plugins)/main.so")
        try buildFamily(value: 8)
        let error = #expect(throws: PluginError.self) { try stage("\(plugins)/main.so") }
        #expect(error?.code == .conflict)
        #expect(error?.message.contains("\(plugins)/sub/deep/libtwo-\(mark).so") == true)
        staging.discard(first)
        #expect(try !FileManager.default.fileExists(atPath: #require(first.folder)))
        _ = try stage("\(plugins)/main.so")
    }

    @Test func `A library with the same name as one that the process has loaded is a conflict`() throws {
        let library = try CFixture.build("int x;", ["-Wl,-soname,libc.so.6"], name: "libc.so.6")
        try folder.copy(library, as: "plugins/libc.so.6")
        let module = try CFixture.build(
            CFixture.entry, ["-nostdlib", "-Wl,--no-as-needed", library, "-Wl,-rpath,$ORIGIN"])
        let original = try folder.copy(module, as: "plugins/a.so")
        let error = #expect(throws: PluginError.self) { try stage(original) }
        #expect(error?.code == .conflict)
    }

    @Test func `The copies of a dead host are removed, but not those of a living one`() async throws {
        let base = "\(folder.path)/staging"
        await #expect(processExitsWith: .signal(SIGKILL)) { [base = base as String] in
            let staging = try Staging(base: base)
            withExtendedLifetime(staging) { _ = kill(getpid(), SIGKILL) }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: base).count == 2)
        let other = try Staging(base: base)
        let names = try FileManager.default.contentsOfDirectory(atPath: base)
        #expect(Set(names.map { "\(base)/\($0)" }) == [staging.path, other.path])
        other.close()
        other.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: base).count == 1)
    }

    @Test(arguments: [[], ["lock.new"]]) func `A host that dies while it creates its folder leaves nothing`(
        files: [String]
    ) throws {
        let base = try folder.folder("hosts", mode: 0o700)
        try folder.folder("hosts/host-000000")
        for file in files { try folder.file("hosts/host-000000/\(file)") }
        let staging = try Staging(base: base)
        #expect(try FileManager.default.contentsOfDirectory(atPath: base).map { "\(base)/\($0)" } == [staging.path])
    }

    /// Each host removes the folders that the others have not locked yet.
    @Test func `Many hosts that start at once all get their folders`() async throws {
        let base = "\(folder.path)/hosts"
        let stagings = try await withThrowingTaskGroup(of: Staging.self) { group in
            for _ in 0..<200 { group.addTask { try Staging(base: base) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: base)
        #expect(Set(names.map { "\(base)/\($0)" }) == Set(stagings.map(\.path)))
        for staging in stagings {
            #expect(try FileManager.default.contentsOfDirectory(atPath: staging.path) == ["lock"])
            staging.close()
        }
    }

    @Test func `A base folder that others can enter is refused`() throws {
        for base in [try folder.folder("open", mode: 0o755), try folder.file("file")] {
            let error = #expect(throws: PluginError.self) { try Staging(base: base) }
            #expect(error?.code == .stagingFailed)
        }
    }

    // MARK: -

    /// Part of the names of libraries, unique to this test, since a process loads each name only once.
    private var mark: Substring { folder.path.suffix(6) }

    private func stage(_ path: String, checkTrust: Bool = true) throws -> StagedFile {
        try staging.stageWhenWritten(path: path, checkTrust: checkTrust)
    }

    private func mode(_ path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    private func expectNothingLeft() throws {
        let items = try FileManager.default.subpathsOfDirectory(atPath: staging.path)
        let files = items.filter {
            (try? FileManager.default.contentsOfDirectory(atPath: "\(staging.path)/\($0)")) == nil
        }
        #expect(files == ["lock"])
    }

    /// Calls the entry function, which returns a number here.
    private func call(_ file: StagedFile) throws -> Int {
        let handle = try #require(dlopen(file.path, RTLD_NOW | RTLD_LOCAL), "\(String(cString: dlerror()))")
        let entry = try #require(dlsym(handle, "plugin_module_entry"))
        typealias Entry = @convention(c) () -> Int
        return unsafeBitCast(entry, to: Entry.self)()
    }

    /// main.so needs sub/libone-….so, which needs sub/deep/libtwo-….so.
    private func buildFamily(value: Int) throws {
        let two = try CFixture.build(
            "int two(void) { return \(value); }", ["-Wl,-soname,libtwo-\(mark).so"], name: "libtwo-\(mark).so")
        let one = try CFixture.build(
            "int two(void); int one(void) { return two(); }",
            [two, "-Wl,-soname,libone-\(mark).so", "-Wl,-rpath,$ORIGIN/deep"], name: "libone-\(mark).so")
        let main = try CFixture.build(
            "int one(void); void *plugin_module_entry(void) { return (void *)(long)one(); }",
            [one, "-Wl,--allow-shlib-undefined", "-Wl,-rpath,$ORIGIN/sub"])
        try folder.folder("plugins/sub/deep")
        for (source, name) in [(main, "main.so"), (one, "sub/libone-\(mark).so"), (two, "sub/deep/libtwo-\(mark).so")] {
            try? FileManager.default.removeItem(atPath: "\(plugins)/\(name)")
            try folder.copy(source, as: "plugins/\(name)")
        }
    }
}
