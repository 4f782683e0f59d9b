import Foundation
import PluginHost
import Synchronization

/// Shared libraries that are built while the tests run, with the compiler that comes with Swift.
enum CFixture {
    /// A library is built once, by the first request for it; later requests wait only for that build.
    private final class Product: Sendable {
        let path = Mutex<String?>(nil)
    }

    private static let products = Mutex<[String: Product]>([:])

    /// An entry function that returns no description; sufficient for tests that do not call it.
    static let entry = "const void *plugin_module_entry(void) { return 0; }"

    /// Compiles C to a file in a separate folder and returns its path.
    ///
    /// - Parameters:
    ///   - flags: Compiler flags, which follow those for a shared library that can include `plugin_abi.h`.
    ///   - name: The file name.
    static func build(_ source: String, _ flags: [String] = [], name: String = "libfixture.so") throws -> String {
        try make(source, ["-shared", "-fPIC"] + flags, name)
    }

    /// Compiles C to a file that is not a shared library.
    static func program(_ source: String, _ flags: [String] = []) throws -> String {
        try make(source, flags, "program")
    }

    private static func make(_ source: String, _ flags: [String], _ name: String) throws -> String {
        let key = ([name, source] + flags).joined(separator: "\0")
        let product = products.withLock { products in
            let product = products[key] ?? Product()
            products[key] = product
            return product
        }
        return try product.path.withLock { known in
            if let path = known { return path }
            let path = try kept(key) { try compile(source, flags + ["-o", "\($0)/\(name)"]) } + "/\(name)"
            known = path
            return path
        }
    }

    private static func compile(_ source: String, _ arguments: [String]) throws {
        guard let compiler else { throw POSIXError(.ENOENT) }
        try compiler.run(["-std=c11", "-I", headers, "-x", "c", "-", "-x", "none"] + arguments, input: source)
    }

    private static let compiler = Tool("clang")

    // MARK: - Kept builds

    /// Returns the folder with the files that `make` has made for a key, in this run or an earlier one.
    private static func kept(_ key: String, _ make: (_ folder: String) throws -> Void) throws -> String {
        let place = key.contains(TemporaryFolder.prefix) ? try own.get().path : try store.get()
        let others = key.contains("/Sources/CPlugin") ? sources : headersAndCompiler
        let folder = "\(place)/\(String(digest(key.utf8, after: others), radix: 16))"
        if access(folder, F_OK) == 0 { return folder }
        let new = try makeTemporaryFolder("\(place)/.new-XXXXXX")
        do { try make(new) } catch {
            try? FileManager.default.removeItem(atPath: new)
            throw error
        }
        // Another process may have made the folder in the meantime.
        if rename(new, folder) != 0 { try FileManager.default.removeItem(atPath: new) }
        return folder
    }

    /// The folder for sources that contain the path of a test's folder, and so never occur again. It is removed when
    /// the process exits.
    private static let own: Result<TemporaryFolder, any Error> = Result {
        // A global variable is not deinitialized at exit.
        atexit { if let path = try? CFixture.own.get().path { try? FileManager.default.removeItem(atPath: path) } }
        return try TemporaryFolder()
    }

    /// The folder for all other sources. It belongs to this user and is kept from run to run, so that most sources are
    /// compiled only once.
    private static let store: Result<String, any Error> = Result {
        let path = "\(NSTemporaryDirectory())/pluginhost-fixtures-\(geteuid())"
        mkdir(path, 0o700)
        var status = stat()
        guard lstat(path, &status) == 0, status.st_uid == geteuid(), status.st_mode == S_IFDIR | 0o700 else {
            return try own.get().path
        }
        return path
    }

    /// A digest of what every fixture depends on besides its source.
    private static let headersAndCompiler: UInt64 = {
        var status = stat()
        if let compiler { stat(compiler.path, &status) }
        return digest(filesIn: headers, after: digest("\(status.st_size) \(status.st_mtim.tv_sec)".utf8))
    }()

    /// The same, and the C sources of this project, which some fixtures contain.
    private static let sources: UInt64 = {
        let folder = "\(repository)/Sources"
        let all = (try? FileManager.default.contentsOfDirectory(atPath: folder).sorted()) ?? []
        return all.filter { $0.hasPrefix("CPlugin") }.reduce(headersAndCompiler) { state, name in
            digest(filesIn: "\(folder)/\(name)", after: state)
        }
    }()

    private static func digest(filesIn folder: String, after state: UInt64) -> UInt64 {
        let names = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String }.sorted() ?? []
        return names.reduce(state) { state, name in
            digest(FileManager.default.contents(atPath: "\(folder)/\(name)") ?? Data(), after: state)
        }
    }

    /// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo).
    private static func digest(_ bytes: some Sequence<UInt8>, after state: UInt64 = 0xCBF2_9CE4_8422_2325) -> UInt64 {
        bytes.reduce(state) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}
