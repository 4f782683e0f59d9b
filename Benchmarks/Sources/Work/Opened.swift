public import CPluginABI
import Foundation
import Glibc
import PluginABI

/// The folder of the built modules, and the libraries that the floors open without a host.
public enum Opened {
    /// `BENCHMARK_MODULES`, or the folder of this program.
    public static let folder =
        ProcessInfo.processInfo.environment["BENCHMARK_MODULES"]
        ?? URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().path

    public static func module(_ name: String) -> String { "\(folder)/lib\(name).so" }

    /// Opens a library and finds a function in it.
    public static func function<Function>(_ symbol: String, in file: String, as type: Function.Type) -> Function {
        guard let handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), let found = dlsym(handle, symbol) else {
            fatalError("\(symbol) is not in \(file): \(dlerror().map { String(cString: $0) } ?? "no reason is given")")
        }
        return unsafeBitCast(found, to: type)
    }

    /// Opens a module, gets its description, and activates it with a host that accepts every reply and does nothing
    /// else.
    @discardableResult
    public static func activate(_ file: String) -> plugin_module {
        let entry = function("plugin_module_entry", in: file, as: plugin_module_entry_function.self)
        let module = entry()!.pointee
        guard module.activate(module.data, host) == 0 else { fatalError("\(file) refuses the host.") }
        return module
    }

    private nonisolated(unsafe) static let host: UnsafePointer<plugin_host> = {
        let host = UnsafeMutablePointer<plugin_host>.allocate(capacity: 1)
        host.initialize(to: plugin_host())
        host.pointee.size = UInt32(MemoryLayout<plugin_host>.size)
        (host.pointee.abi_major, host.pointee.abi_minor) = (UInt16(PLUGIN_ABI_MAJOR), UInt16(PLUGIN_ABI_MINOR))
        host.pointee.resolve = { _, _, _ in PLUGIN_REPLY_ACCEPTED }
        host.pointee.get_extension = { _, _ in nil }
        return UnsafePointer(host)
    }()

    static let one = function(
        "bench_one", in: module("BenchModule"), as: (@convention(c) (Int) -> Int).self)
    static let three = function(
        "bench_three", in: module("BenchModule"),
        as: (@convention(c) (UnsafePointer<UInt8>, Int, Int, UnsafePointer<UInt8>, Int) -> Int).self)
    static let later = function(
        "bench_later", in: module("BenchModule"),
        as: (@convention(c) (
            Int, UnsafeMutableRawPointer, @Sendable @convention(c) (UnsafeMutableRawPointer, Int) -> Void
        ) -> Void)
        .self)
}
