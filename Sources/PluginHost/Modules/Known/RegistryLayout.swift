import CPluginHost
import Glibc
import PluginABI
import PluginFile

/// The layout of the file of a ``RegistryCache``: a header, a table of entries that is sorted by path, a table of the
/// libraries that modules bring along, and the texts of both. All numbers are little-endian.
enum RegistryLayout {
    /// The version of the layout; part of the file's name.
    static let version: UInt32 = 4
    /// The largest file, in bytes.
    static let bytesMax = 256 << 20
    private static let magic: UInt64 = 0x3159_5254_5349_4750  // "PGISTRY1"

    fileprivate struct Header: BitwiseCopyable {
        var magic = RegistryLayout.magic
        var version = RegistryLayout.version
        var size = UInt32(MemoryLayout<Header>.size)
        /// The length of the file.
        var length: UInt64 = 0
        /// The digest of everything after this field. It guards against damage, not against malice.
        var checksum: UInt64 = 0
        var key = Slice()
        var entries = Slice()
        var libraries = Slice()
        /// A slice of the file, like the other three; the slices in the tables are slices of this one.
        var texts = Slice()

        /// The offset of the first byte that the checksum covers.
        static let checked = MemoryLayout<Header>.offset(of: \.key)!
    }

    /// A part of a table or of the texts.
    fileprivate struct Slice: BitwiseCopyable {
        var start: UInt32 = 0
        var count: UInt32 = 0

        var range: Range<Int> { Int(start)..<Int(start) + Int(count) }
    }

    fileprivate struct Identity: BitwiseCopyable {
        var device: UInt64
        var inode: UInt64
        var size: Int64
        var modified: Int64
        var changed: Int64

        init(_ identity: FileIdentity) {
            (device, inode, size) = (identity.device, identity.inode, identity.size)
            (modified, changed) = (identity.modified, identity.changed)
        }

        var value: FileIdentity {
            FileIdentity(device: device, inode: inode, size: size, modified: modified, changed: changed)
        }
    }

    fileprivate struct Entry: BitwiseCopyable {
        var path: Slice
        var identity: Identity
        var digest: UInt64
        /// 1 for a module, 0 for an error.
        var isModule: UInt32
        var abiMajor: UInt16 = 0
        var abiMinor: UInt16 = 0
        /// The code, the source and the message of the error.
        var code = Slice()
        var source = Slice()
        var message = Slice()
        var manifest = Slice()
        var toolchain = Slice()
        var index = Slice()
        var libraries = Slice()
    }

    fileprivate struct Library: BitwiseCopyable {
        var path: Slice
        var identity: Identity
    }
}

/// The content of the file of a ``RegistryCache``, checked.
struct RegistryContent: Sendable {
    private typealias Layout = RegistryLayout

    private let bytes: KnownBytes
    private let header: RegistryLayout.Header

    /// Checks everything that later accesses rely on: whether the content is complete and intact, whether it belongs to
    /// this key, and whether all positions are inside it.
    ///
    /// - Parameter bytes: The file; `nil` if it cannot be read.
    /// - Throws: ``Fault``.
    init(_ bytes: KnownBytes?, key: RegistryKey) throws(Fault) {
        guard let bytes else { throw Fault("cannot be read as a whole") }
        let (expected, size) = (Layout.Header(), bytes.all.count)
        guard size >= MemoryLayout<Layout.Header>.size, size <= Layout.bytesMax else {
            throw Fault("has \(size) bytes")
        }
        let header = bytes.all.loadUnaligned(as: Layout.Header.self)
        guard header.magic == expected.magic, header.version == expected.version, header.size == expected.size else {
            throw Fault("is not a registry file of this version")
        }
        guard header.length == UInt64(size) else {
            throw Fault("has \(size) bytes instead of \(header.length)")
        }
        guard header.checksum == Self.checksum(of: bytes.all) else { throw Fault("has a wrong checksum") }
        (self.bytes, self.header) = (bytes, header)
        guard isTable(header.entries, of: Layout.Entry.self), isTable(header.libraries, of: Layout.Library.self),
            header.texts.range.upperBound <= size, isText(header.key)
        else { throw Fault("refers to data beyond its end") }
        guard text(header.key).elementsEqual(key.bytes) else { throw Fault("belongs to another host") }
        for index in 0..<Int(header.libraries.count) {
            guard isText(library(index).path) else { throw Fault("refers to data beyond its end") }
        }
        for index in 0..<count {
            let entry = entry(index)
            let texts = [
                entry.path, entry.code, entry.source, entry.message, entry.manifest, entry.toolchain, entry.index,
            ]
            guard texts.allSatisfy(isText), entry.isModule <= 1,
                entry.libraries.range.upperBound <= Int(header.libraries.count)
            else { throw Fault("refers to data beyond its end") }
            guard index == 0 || Self.compare(text(self.entry(index - 1).path), text(entry.path)) < 0 else {
                throw Fault("is not sorted")
            }
        }
    }

    /// The reason why a file is ignored, as the predicate of a sentence.
    struct Fault: Error {
        let text: String
        init(_ text: String) { self.text = text }
    }

    /// The number of entries.
    var count: Int { Int(header.entries.count) }

    /// Returns an entry.
    ///
    /// - Parameter index: At least 0, less than ``count``.
    subscript(index: Int) -> KnownFile {
        let entry = entry(index)
        return KnownFile(
            path: string(entry.path), identity: entry.identity.value, digest: entry.digest,
            outcome: entry.isModule == 1 ? .module(facts(entry)) : .failure(error(entry)))
    }

    /// Returns the path of an entry.
    ///
    /// - Parameter index: At least 0, less than ``count``.
    func path(at index: Int) -> String { string(entry(index).path) }

    /// Returns the index of the entry of a file; `nil` if there is none.
    func index(of path: String) -> Int? {
        var path = path
        return path.withUTF8 { search(UnsafeRawBufferPointer($0)) }
    }

    private func search(_ path: UnsafeRawBufferPointer) -> Int? {
        var (start, end) = (0, count)
        while start < end {
            let middle = (start + end) / 2
            let order = Self.compare(text(entry(middle).path), path)
            if order == 0 { return middle }
            if order < 0 { start = middle + 1 } else { end = middle }
        }
        return nil
    }

    private func error(_ entry: RegistryLayout.Entry) -> PluginError {
        PluginError(
            .init(rawValue: string(entry.code)), string(entry.message),
            source: entry.source.count == 0 ? nil : string(entry.source))
    }

    private func facts(_ entry: RegistryLayout.Entry) -> KnownFile.ModuleFacts {
        KnownFile.ModuleFacts(
            abi: .init(major: entry.abiMajor, minor: entry.abiMinor), toolchain: string(entry.toolchain),
            manifest: known(entry.manifest), index: known(entry.index),
            libraries: entry.libraries.range.map { index in
                let library = library(index)
                return .init(path: string(library.path), identity: library.identity.value)
            })
    }

    // MARK: Positions

    private func isTable<Row>(_ table: RegistryLayout.Slice, of: Row.Type) -> Bool {
        Int(table.start) + Int(table.count) * MemoryLayout<Row>.stride <= bytes.all.count
    }

    private func isText(_ slice: RegistryLayout.Slice) -> Bool { slice.range.upperBound <= Int(header.texts.count) }

    private func entry(_ index: Int) -> RegistryLayout.Entry {
        let start = Int(header.entries.start) + index * MemoryLayout<Layout.Entry>.stride
        return bytes.all.loadUnaligned(fromByteOffset: start, as: Layout.Entry.self)
    }

    private func library(_ index: Int) -> RegistryLayout.Library {
        let start = Int(header.libraries.start) + index * MemoryLayout<Layout.Library>.stride
        return bytes.all.loadUnaligned(fromByteOffset: start, as: Layout.Library.self)
    }

    private func range(_ slice: RegistryLayout.Slice) -> Range<Int> {
        let start = Int(header.texts.start) + Int(slice.start)
        return start..<start + Int(slice.count)
    }

    private func text(_ slice: RegistryLayout.Slice) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes.all[range(slice)])
    }

    private func string(_ slice: RegistryLayout.Slice) -> String { String(decoding: text(slice), as: UTF8.self) }

    private func known(_ slice: RegistryLayout.Slice) -> KnownText { KnownText(bytes, range(slice)) }

    /// Returns a negative number, 0 or a positive number, like `memcmp`.
    private static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
        let count = min(left.count, right.count)
        let order = count == 0 ? 0 : Int(memcmp(left.baseAddress!, right.baseAddress!, count))
        return order == 0 ? left.count - right.count : order
    }

    fileprivate static func checksum(of file: UnsafeRawBufferPointer) -> UInt64 {
        var digest = FileDigest(size: file.count)
        digest.mix(UnsafeRawBufferPointer(rebasing: file[RegistryLayout.Header.checked...]))
        return digest.value
    }
}

extension RegistryContent {
    /// Returns the content of a file; `nil` if it would be longer than ``RegistryLayout/bytesMax``.
    ///
    /// - Parameter files: What is known, each path once, sorted by the bytes of the paths.
    static func encoded(_ files: [KnownFile], key: RegistryKey) -> [UInt8]? {
        var texts = RegistryTexts()
        let key = texts.add(key.bytes)
        var entries: [Layout.Entry] = []
        var libraries: [Layout.Library] = []
        for file in files {
            switch file.outcome {
            case .failure(let error):
                entries.append(
                    Layout.Entry(
                        path: texts.add(file.path.utf8), identity: .init(file.identity), digest: file.digest,
                        isModule: 0, code: texts.add(error.code.rawValue.utf8),
                        source: texts.add((error.source ?? "").utf8), message: texts.add(error.message.utf8)))
            case .module(let facts):
                let own = Layout.Slice(start: UInt32(libraries.count), count: UInt32(facts.libraries.count))
                libraries += facts.libraries.map { .init(path: texts.add($0.path.utf8), identity: .init($0.identity)) }
                entries.append(
                    Layout.Entry(
                        path: texts.add(file.path.utf8), identity: .init(file.identity), digest: file.digest,
                        isModule: 1, abiMajor: facts.abi.major, abiMinor: facts.abi.minor,
                        manifest: facts.manifest.withBytes { texts.add($0) },
                        toolchain: texts.add(facts.toolchain.utf8),
                        index: facts.index.withBytes { texts.add($0) }, libraries: own))
            }
            guard texts.bytes.count <= Layout.bytesMax else { return nil }
        }
        let start = MemoryLayout<Layout.Header>.size
        let librariesStart = start + entries.count * MemoryLayout<Layout.Entry>.stride
        let textsStart = librariesStart + libraries.count * MemoryLayout<Layout.Library>.stride
        let length = textsStart + texts.bytes.count
        guard length <= Layout.bytesMax else { return nil }
        var header = Layout.Header(length: UInt64(length), key: key)
        header.entries = .init(start: UInt32(start), count: UInt32(entries.count))
        header.libraries = .init(start: UInt32(librariesStart), count: UInt32(libraries.count))
        header.texts = .init(start: UInt32(textsStart), count: UInt32(texts.bytes.count))
        var file: [UInt8] = []
        file.reserveCapacity(length)
        withUnsafeBytes(of: header) { file += $0 }
        entries.withUnsafeBytes { file += $0 }
        libraries.withUnsafeBytes { file += $0 }
        file += texts.bytes
        header.checksum = file.withUnsafeBytes(checksum)
        withUnsafeBytes(of: header) { header in file.replaceSubrange(0..<header.count, with: header) }
        return file
    }
}

/// The texts of a file that is being encoded.
private struct RegistryTexts {
    var bytes: [UInt8] = []

    /// Adds a text. Texts that are too long for the file make it too long as a whole.
    mutating func add(_ text: some Collection<UInt8>) -> RegistryLayout.Slice {
        let slice = RegistryLayout.Slice(
            start: UInt32(truncatingIfNeeded: bytes.count), count: UInt32(truncatingIfNeeded: text.count))
        bytes.append(contentsOf: text)
        return slice
    }
}
