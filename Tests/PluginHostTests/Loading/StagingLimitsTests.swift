import CDispatch
import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// The cost of examining a file before any part of it is opened.
@Suite struct StagingLimitsTests {
    let folder: TemporaryFolder
    let staging: Staging

    init() throws {
        folder = try TemporaryFolder()
        try folder.folder("plugins")
        staging = try Staging(base: "\(folder.path)/staging")
    }

    private func stage(_ path: String, in staging: Staging? = nil) throws -> StagedFile {
        try (staging ?? self.staging).stageWhenWritten(path: path, checkTrust: true)
    }

    private func refusal(_ path: String, in staging: Staging? = nil) -> String {
        let error = #expect(throws: PluginError.self) { try stage(path, in: staging) }
        #expect(error?.code == .invalidFile)
        return error?.message ?? ""
    }

    /// A file of the given length, of which only the beginning occupies disk space.
    private func sparse(_ name: String, _ content: Data, length: Int) throws -> String {
        let path = try folder.file("plugins/\(name)", content)
        try #require(truncate(path, off_t(length)) == 0)
        return path
    }

    // MARK: Size

    @Test func `Large files of which only the magic number is valid are refused after their first block`() throws {
        for number in 0..<20 {
            let path = try sparse("\(number).so", Data("\u{7F}ELF".utf8), length: 200 << 20)
            #expect(refusal(path).contains("is damaged"))
        }
        let work = staging.work
        #expect(work.copies == 0 && work.checkedBytes <= 20 * 65536)
    }

    @Test func `A file over the size limit is not read, and the error names the limit and the setting`() throws {
        let path = try sparse("a.so", Data("\u{7F}ELF".utf8), length: 1 << 30)
        let message = refusal(path)
        #expect(message.contains("\(1 << 30) bytes long; at most \(256 << 20)") && message.contains("maximumFileBytes"))
        #expect(staging.work.checkedBytes == 0)
        let module = try folder.copy(CFixture.build(CFixture.entry), as: "plugins/b.so")
        let small = try Staging(base: "\(folder.path)/small", maximumFileBytes: 1000)
        #expect(refusal(module, in: small).contains("at most 1000"))
        _ = try stage(module)
    }

    @Test func `Any damage of headers and tables is found before the file is copied`() throws {
        let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: CFixture.build(CFixture.entry))))
        let headers = (0..<Int(whole[56])).map { 64 + $0 * 56 }
        let dynamic = headers.filter({ whole[$0] == 2 }).map { $0 + 8 }
        for field in [18, 54, 56] + dynamic {
            var file = whole
            file[field] = 0xEE
            #expect(refusal(try folder.file("plugins/\(field).so", Data(file))) != "")
        }
        #expect(staging.work.copies == 0 && staging.work.checkedBytes > 0)
    }

    @Test func `A sparse file is copied as a sparse file, and has the digest of its bytes`() throws {
        let module = try Data(contentsOf: URL(fileURLWithPath: CFixture.build(CFixture.entry)))
        let length = module.count + 8 << 20
        let holed = try stage(sparse("a.so", module, length: length))
        let full = try stage(folder.file("plugins/b.so", module + Data(count: length - module.count)))
        #expect(holed.digest == full.digest && holed.size == length)
        #expect(try Staging.sameBytes(holed, full))
        var status = stat()
        #expect(stat(holed.path, &status) == 0 && Int(status.st_blocks) * 512 < 1 << 20)
    }

    // MARK: Needs

    @Test func `A name that is needed a thousand times, in hundreds of folders, is looked up once`() throws {
        let long = String(repeating: "x", count: 200)
        let module = try NeedyModule(names: [long], runpath: Array(repeating: "$ORIGIN", count: 511))
        let file = try stage(
            folder.file("plugins/a.so", module.needing(Array(repeating: long, count: 1024))))
        #expect(file.image.needed == [long] && staging.work.lookups == 1)
    }

    @Test func `A file that names one library too many is refused`() throws {
        let names = Array(repeating: "x", count: ELFDynamic.neededLimit + 1)
        let module = try NeedyModule(names: ["x"], runpath: ["$ORIGIN"])
        let message = refusal(try folder.file("plugins/a.so", module.needing(names)))
        #expect(message.contains("it needs more than \(ELFDynamic.neededLimit) libraries"))
    }

    @Test func `The article states the limits`() throws {
        let article = try String(
            contentsOfFile: "\(repository)/Sources/PluginHost/PluginHost.docc/HowAFileBecomesAModule.md",
            encoding: .utf8)
        for (what, bound) in [
            ("names of libraries that a file needs", ELFDynamic.neededLimit),
            ("libraries that a module finds beside itself", Companions.libraryLimit),
            ("names of libraries that the module and those libraries need", Companions.needLimit),
            ("paths at which these libraries are looked for", Companions.lookupLimit),
        ] {
            let row = "| \(what) | \(bound.formatted(.number.locale(Locale(identifier: "en_US")))) |"
            #expect(article.contains(row), "\(row)")
        }
    }

    @Test func `Names that no file can have are not looked up`() throws {
        let names = (0..<3).map { String(repeating: "x", count: 300) + "\($0)" }
        let module = try NeedyModule(names: names, runpath: (0..<300).map { "$ORIGIN/\($0)" })
        _ = try stage(folder.file("plugins/a.so", module.needing(names)))
        #expect(staging.work.lookups == 0)
    }

    @Test func `A file whose libraries cost too many lookups in many folders is refused`() throws {
        let names = (0..<1000).map { "lib\($0).so" }
        let module = try NeedyModule(names: names, runpath: (0..<300).map { "$ORIGIN/\($0)" })
        let message = refusal(try folder.file("plugins/a.so", module.needing(names)))
        #expect(message.contains("more than \(Companions.lookupLimit) library lookups"))
        #expect(staging.work.lookups <= Companions.lookupLimit + 1 && staging.work.copies == 1)
    }

    @Test func `Hundreds of files that need each other are refused at little cost`() throws {
        let names = (0..<300).map { "l\($0).so" }
        let content = try NeedyModule(names: names, runpath: ["$ORIGIN"]).needing(names)
        for name in names { try folder.file("plugins/\(name)", content) }
        for name in names {
            let message = refusal("\(folder.path)/plugins/\(name)")
            #expect(message.contains("more than \(Companions.libraryLimit) copied libraries"))
        }
        let work = staging.work
        #expect(work.copies == 300 && work.copiedBytes == 300 * content.count && work.links == 0)
        #expect(work.lookups <= 300 * (Companions.libraryLimit + 2))
    }

    @Test func `Modules that need each other share the copies of their libraries`() throws {
        let names = (0..<60).map { "s\($0).so" }
        let content = try NeedyModule(names: names, runpath: ["$ORIGIN"]).needing(names)
        for name in names { try folder.file("plugins/\(name)", content) }
        usleep(50_000)  // A file that has just been written may change again without a new modification time.
        let files = try names.map { try stage("\(folder.path)/plugins/\($0)") }
        let work = staging.work
        #expect(work.copies == 2 * 60 && work.links == 60 * 58 && work.lookups == 60 * 60)
        // Each module has its own copy, and all modules share one copy of each library.
        var (own, library) = (stat(), stat())
        let second = try #require(files[1].folder)
        #expect(stat(files[0].path, &own) == 0 && stat("\(second)/s0.so", &library) == 0)
        #expect(own.st_ino != library.st_ino && library.st_nlink == 59)
        for file in files.dropFirst(2) { staging.discard(file) }
        #expect(FileManager.default.fileExists(atPath: "\(second)/s0.so"))
    }

    @Test func `A library that has changed is copied again`() throws {
        let module = try NeedyModule(names: ["lib.so"], runpath: ["$ORIGIN"])
        for name in ["a", "b"] { try folder.file("plugins/\(name).so", module.needing(["lib.so"])) }
        let library = try folder.file("plugins/lib.so", module.needing([]))
        usleep(50_000)
        _ = try stage("\(folder.path)/plugins/a.so")
        unlink(library)
        try folder.file("plugins/lib.so", try module.needing([]))
        usleep(50_000)
        _ = try stage("\(folder.path)/plugins/b.so")
        #expect(staging.work.copies == 4 && staging.work.links == 0)
    }

    @Test func `The size limit applies to a module and its libraries together`() throws {
        let module = try NeedyModule(names: ["lib.so"], runpath: ["$ORIGIN"])
        let content = try module.needing(["lib.so"])
        let path = try folder.file("plugins/a.so", content)
        try folder.file("plugins/lib.so", content)
        let small = try Staging(base: "\(folder.path)/small", maximumFileBytes: content.count * 3 / 2)
        #expect(refusal(path, in: small).contains("with the libraries that it finds through $ORIGIN"))
    }
}
