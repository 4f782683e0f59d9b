import CDispatch
import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// A record of a file is trusted only if it is complete, intact, the host's own, and about this very file.
struct RegistryCacheTests {
    private let folder: TemporaryFolder
    private let key = RegistryKey(folders: ["/plugins", "/more\nplugins"], settings: ["scheme shop"])

    init() throws { folder = try TemporaryFolder() }

    private static func identity(_ inode: UInt64, size: Int64 = 40_000) -> FileIdentity {
        FileIdentity(device: 8, inode: inode, size: size, modified: 1_700_000_000_123_456_789, changed: -5)
    }

    private static func module(_ path: String, inode: UInt64, libraries: Int = 0) -> KnownFile {
        KnownFile(
            path: path, identity: identity(inode), digest: .max - inode,
            outcome: .module(
                .init(
                    abi: .init(major: 1, minor: 7), toolchain: "swift 6.3",
                    manifest: KnownText(#"{"name": "Shop", "déjà": "vu"}"#), index: KnownText("Shop/buy\n@init"),
                    libraries: (0..<libraries).map { .init(path: "\(path).\($0)", identity: identity(UInt64($0))) })))
    }

    private static let samples = [
        module("/plugins/libA.so", inode: 1), module("/plugins/libB.so", inode: 2, libraries: 3),
        KnownFile(
            path: "/plugins/libé.so", identity: identity(3), digest: 0,
            outcome: .failure(PluginError(.moduleCrashed, "A constructor crashed.", source: "Shop"))),
        KnownFile(
            path: "/plugins/libe\u{301}.so", identity: identity(4, size: 0), digest: 7,
            outcome: .failure(PluginError(.invalidFile, ""))),
    ].sorted { PathKey($0.path) < PathKey($1.path) }

    private func cache(_ key: RegistryKey? = nil) -> RegistryCache {
        RegistryCache(folder: "\(folder.path)/cache", key: key ?? self.key)
    }

    /// Writes the samples, and returns the path of the file.
    @discardableResult
    private func written(_ files: [KnownFile] = samples) throws -> String {
        let cache = cache()
        for file in files { cache.record(file) }
        cache.write()
        #expect(cache.problems == [])
        try #require(access(cache.path, F_OK) == 0)
        return cache.path
    }

    /// Expects that the file is ignored, with one problem that contains a text, and can be replaced.
    private func expectIgnored(_ reason: String, location: SourceLocation = #_sourceLocation) {
        let cache = cache()
        #expect(cache.files == [], sourceLocation: location)
        #expect(cache.problems.count == 1, sourceLocation: location)
        #expect(cache.problems.first?.message.contains(reason) == true, "\(cache.problems)", sourceLocation: location)
    }

    @Test func `What one host has recorded, the next one knows`() throws {
        try written()
        let cache = cache()
        #expect(cache.problems == [])
        #expect(cache.files == Self.samples)
        for sample in Self.samples {
            #expect(cache.find(sample.path, identity: sample.identity) == sample)
            #expect(cache.find(sample.path, identity: Self.identity(99)) == nil)
        }
        #expect(cache.find("/plugins/libA.so.0", identity: Self.identity(1)) == nil)
        #expect(cache.find("", identity: .none) == nil)
        guard case .module(let facts)? = cache.find("/plugins/libA.so", identity: Self.identity(1))?.outcome else {
            throw PluginError(.invalidFile, "no module")
        }
        #expect(facts.manifest.string == #"{"name": "Shop", "déjà": "vu"}"#)
        #expect(facts.index.withBytes { $0.elementsEqual("Shop/buy\n@init".utf8) })
    }

    @Test func `What was prepared is valid until the file or what is known of it changes`() throws {
        _ = try written()
        let (module, failed) = (Self.module("/plugins/libA.so", inode: 1), Self.samples[2])
        func prepared() -> RegistryCache {
            RegistryCache(folder: "\(folder.path)/cache", key: key) { content in
                let records = (0..<content.count).map { index in
                    let file = content[index]
                    return file.libraries.isEmpty
                        ? FileRecord(path: file.path, folder: "/plugins", identity: file.identity) : nil
                }
                return PreparedRecords(records: records, registrations: nil)
            }
        }
        let cache = prepared()
        #expect(cache.prepared?.records.map { $0?.path } == Self.samples.map { $0.libraries.isEmpty ? $0.path : nil })
        for sample in Self.samples + Self.samples.reversed() {
            let record = cache.preparedRecord(sample.path, identity: sample.identity)
            #expect(record?.path == (sample.libraries.isEmpty ? sample.path : nil))
        }
        #expect(cache.preparedRecord(module.path, identity: failed.identity) == nil)
        #expect(cache.preparedRecord("/plugins/libC.so", identity: module.identity) == nil)
        cache.forget(module.path)
        #expect(cache.preparedRecord(module.path, identity: module.identity) == nil)
        cache.forgetPrepared()
        #expect(cache.preparedRecord(failed.path, identity: failed.identity) == nil)
        #expect(cache.find(failed.path, identity: failed.identity) == failed)
        #expect(self.cache().prepared == nil)
    }

    @Test func `A change replaces what was known, and a file that is forgotten is gone from the next write`() throws {
        try written()
        let cache = cache()
        cache.forget("/plugins/libB.so")
        cache.forget("/plugins/unknown.so")
        cache.record(Self.module("/plugins/libA.so", inode: 77))
        #expect(cache.find("/plugins/libB.so", identity: Self.identity(2)) == nil)
        #expect(cache.find("/plugins/libA.so", identity: Self.identity(1)) == nil)
        cache.write()
        let next = self.cache()
        #expect(next.files == cache.files)
        #expect(next.find("/plugins/libA.so", identity: Self.identity(77)) != nil)
        #expect(next.files.count == 3)
        next.forgetAll(besides: Set(paths: ["/plugins/libA.so"]))
        next.write()
        #expect(self.cache().files.map(\.path) == ["/plugins/libA.so"])
    }

    @Test func `A file of several megabytes is read as a whole`() throws {
        let text = String(repeating: "é", count: 400)
        let files = (0..<3_000).map { number in
            KnownFile(
                path: "/plugins/\(10_000 + number).so", identity: Self.identity(UInt64(number)), digest: 0,
                outcome: .failure(PluginError(.invalidFile, "\(number) \(text)")))
        }
        let path = try written(files)
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        #expect(try #require(size) > 2 << 20)
        let read = cache()
        #expect(read.files == files && read.problems == [])
        let file = try #require(FileHandle(forUpdatingAtPath: path))
        try file.truncate(atOffset: 2 << 20)
        try file.close()
        expectIgnored("has 2097152 bytes instead of")
    }

    @Test func `Nothing is written if nothing has changed`() throws {
        let path = try written()
        let before = FileIdentity(path: path)
        let cache = cache()
        for sample in Self.samples { cache.record(sample) }
        cache.write()
        #expect(FileIdentity(path: path) == before)
        cache.record(Self.module("/plugins/libC.so", inode: 5))
        cache.write()
        #expect(FileIdentity(path: path) != before)
    }

    @Test func `A file that changed just before it was read is not recorded`() throws {
        let file = try folder.file("libNew.so", "new")
        let identity = try #require(FileIdentity(path: file))
        let recent = FileIdentity(
            device: identity.device, inode: identity.inode, size: identity.size, modified: identity.modified,
            changed: .max)
        let cache = cache()
        cache.record(KnownFile(path: file, identity: recent, digest: 1, outcome: Self.samples[0].outcome))
        #expect(cache.files == [])
        cache.record(Self.samples[0])
        cache.record(Self.samples[0], isFleeting: true)
        #expect(cache.files == [])
    }

    @Test func `A single wrong bit makes the whole file unknown`() throws {
        let bytes = try Data(contentsOf: URL(filePath: written()))
        func isBelieved(_ data: Data) -> Bool {
            let file = open("\(folder.path)/copy", O_RDWR | O_CREAT | O_TRUNC, 0o600)
            defer { close(file) }
            data.withUnsafeBytes { _ = write(file, $0.baseAddress, $0.count) }
            return (try? RegistryContent(KnownBytes(reading: file, count: data.count), key: key)) != nil
        }
        #expect(isBelieved(bytes))
        var wrong = bytes
        for index in wrong.indices {
            for bit in 0..<8 {
                wrong[index] ^= 1 << bit
                if isBelieved(wrong) { Issue.record("bit \(bit) of byte \(index)") }
                wrong[index] ^= 1 << bit
            }
        }
        for length in 0..<bytes.count where isBelieved(bytes.prefix(length)) { Issue.record("cut at \(length)") }
        #expect(!isBelieved(bytes + [0]))
    }

    @Test func `Positions outside of the file are found even if the checksum is right`() throws {
        let bytes = try Data(contentsOf: URL(filePath: written()))
        // The slices of the header, which has 64 bytes, and of the entries, which follow it and have 120 bytes each.
        let slices = [32, 40, 48, 56] + [0, 64, 72, 80, 88, 96, 104, 112].flatMap { [64 + $0, 64 + 120 + $0] }
        for start in slices {
            for (offset, value) in [(0, UInt32.max), (4, UInt32.max), (4, UInt32(bytes.count))] {
                var wrong = bytes
                withUnsafeBytes(of: value) {
                    wrong.replaceSubrange(start + offset..<start + offset + 4, with: $0)
                }
                var digest = FileDigest(size: wrong.count)
                wrong[32...].withUnsafeBytes { digest.mix($0) }
                withUnsafeBytes(of: digest.value) { wrong.replaceSubrange(24..<32, with: $0) }
                try wrong.write(to: URL(filePath: cache().path))
                chmod(cache().path, 0o600)
                let known = cache()
                #expect(known.files == [] && known.problems.count == 1, "\(start) \(offset) \(value)")
            }
        }
    }

    @Test func `A damaged file is a problem once, and is replaced by the next write`() throws {
        let path = try written()
        truncate(path, 100)
        expectIgnored("has 100 bytes instead of")
        let cache = cache()
        cache.record(Self.samples[0])
        cache.write()
        #expect(self.cache().files == [Self.samples[0]])
        #expect(self.cache().problems == [])
    }

    @Test func `Hosts that differ in what the entries depend on know nothing of each other`() throws {
        let path = try written()
        var others = Array(repeating: key, count: 8)
        others[0].host += "1"
        others[1].abi = "1.65535"
        others[2].architecture = "m68k"
        others[3].toolchain = "swift 9"
        others[4].user += 1
        others[5].folders.reverse()
        others[6].folders = ["/plugins"]
        others[7].settings = []
        #expect(Set(others.map(\.fileName)).count == 8)
        for other in others {
            #expect(cache(other).files == [] && cache(other).problems == [])
            // The same holds if the file names were equal.
            try FileManager.default.copyItem(atPath: path, toPath: cache(other).path)
            #expect(cache(other).files == [])
            #expect(cache(other).problems.first?.message.contains("belongs to another host") == true)
        }
    }

    @Test func `A file that others could have written, or that is no file, is not believed`() throws {
        let path = try written()
        let kept = "\(folder.path)/cache/kept"
        chmod(path, 0o620)
        expectIgnored("its mode must be 0600")
        chmod(path, 0o600)
        link(path, kept)
        expectIgnored("has more than one name")
        unlink(path)
        symlink(kept, path)
        expectIgnored("is a symbolic link")
        unlink(path)
        mkfifo(path, 0o600)
        expectIgnored("is not a regular file")
        unlink(path)
        mkdir(path, 0o700)
        expectIgnored("is not a regular file")
        rmdir(path)
        let sparse = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
        ftruncate(sparse, off_t(RegistryLayout.bytesMax) + 1)
        close(sparse)
        expectIgnored("is too long")
        rename(kept, path)
        #expect(cache().files.count == Self.samples.count)
    }

    @Test func `A folder that others could change is not believed`() throws {
        try written()
        let own = "\(folder.path)/cache"
        chmod(own, 0o750)
        expectIgnored("its mode must be 0700")
        chmod(own, 0o700)
        rename(own, "\(folder.path)/elsewhere")
        symlink("\(folder.path)/elsewhere", own)
        expectIgnored("is not a folder, or is a symbolic link")
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files to another user"))
    func `The file or the folder of another user is not believed`() throws {
        let path = try written()
        chown(path, 65534, 65534)
        expectIgnored("belongs to another user")
        chown(path, 0, 0)
        chown("\(folder.path)/cache", 65534, 65534)
        expectIgnored("belongs to another user")
    }

    @Test func `A folder that cannot be written is one problem, and the cache continues to work`() throws {
        // A regular file takes the place of a parent folder: nobody can create the folder, not even root.
        let file = try folder.file("file", "")
        let cache = RegistryCache(folder: "\(file)/cache", key: key)
        cache.record(Self.samples[0])
        cache.write()
        cache.record(Self.samples[1])
        cache.write()
        #expect(cache.find(Self.samples[0].path, identity: Self.samples[0].identity) != nil)
        let unwritten = cache.problems.filter { $0.message.contains("cannot be saved") }
        #expect(unwritten.count == 1, "\(cache.problems)")
    }

    @Test func `Of hosts that write simultaneously, one wins, and none reads an incomplete file`() async throws {
        try written()
        let files = (0..<200).map { Self.module("/plugins/lib\($0).so", inode: UInt64($0), libraries: $0 % 3) }
        let halves = [files, Array(files.prefix(50))].map { $0.sorted { PathKey($0.path) < PathKey($1.path) } }
        await withTaskGroup { group in
            for half in halves {
                group.addTask {
                    for round in 0..<20 {
                        let cache = cache()
                        cache.forgetAll(besides: [])
                        for file in half { cache.record(file) }
                        cache.record(Self.module("/plugins/z", inode: UInt64(round)))
                        cache.write()
                        #expect(cache.problems == [])
                    }
                }
            }
            group.addTask {
                for _ in 0..<60 {
                    let cache = cache()
                    #expect(cache.problems == [])
                    #expect([Self.samples.count, 51, 201].contains(cache.files.count))
                }
            }
        }
        let left = cache().files.filter { $0.path != "/plugins/z" }
        #expect(halves.contains(left))
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/cache").count == 1)
    }

    @Test func `Only the files of the most recent hosts are kept`() throws {
        let path = try written()
        for number in 0..<RegistryCache.filesMax + 5 {
            var time = timeval(tv_sec: 1_000_000 + number, tv_usec: 0)
            let old = try folder.file("cache/registry-\(number)", Data(), mode: 0o600)
            _ = withUnsafePointer(to: &time) { time in
                utimes(old, [time.pointee, time.pointee])
            }
        }
        try folder.file("cache/other", "")
        let cache = cache()
        cache.record(Self.module("/plugins/new.so", inode: 9))
        cache.write()
        let names = try Set(FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/cache"))
        #expect(names.count == RegistryCache.filesMax + 1)
        #expect(names.isSuperset(of: ["other", (path as NSString).lastPathComponent, "registry-68"]))
        #expect(!names.contains("registry-0"))
    }
}
