import Foundation
import Glibc
import PluginABI

/// Where the built modules lie, and what is opened without a host: the floors.
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
