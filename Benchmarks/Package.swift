// swift-tools-version: 6.1
import PackageDescription

// A package of its own, so that packages that depend on PluginHost do not get the dependencies of the benchmarks.

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]
/// Strips modules, as those that are shipped are. SwiftPM writes debug information in release mode too, ten times as
/// much as the rest.
let stripped: [LinkerSetting] = [.unsafeFlags(["-Xlinker", "--strip-all"])]
/// Whether to leave out the benchmarks for the tools of ordo-one/benchmark, which have to be fetched.
let isAlone = Context.environment["BENCHMARKS_ALONE"] != nil
let abi = Target.Dependency.product(name: "PluginABI", package: "PluginHost")
let host = Target.Dependency.product(name: "PluginHost", package: "PluginHost")

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],  // Required by ordo-one/benchmark; the host is for Linux.
    products: [
        .library(name: "BenchModule", type: .dynamic, targets: ["BenchModule"]),
        .library(name: "CallerModule", type: .dynamic, targets: ["CallerModule"]),
        .library(name: "NumberedModule", type: .dynamic, targets: ["NumberedModule"]),
        .library(name: "PlainModule", type: .dynamic, targets: ["PlainModule"]),
    ],
    dependencies: [
        .package(name: "PluginHost", path: "..")
    ] + (isAlone ? [] : [.package(url: "https://github.com/ordo-one/benchmark", exact: "1.38.1", traits: [])]),
    targets: [
        .target(
            name: "BenchModule", dependencies: [abi], path: "Modules/Bench", swiftSettings: settings,
            linkerSettings: stripped),
        .target(
            name: "CallerModule", dependencies: [abi], path: "Modules/Caller", swiftSettings: settings,
            linkerSettings: stripped),
        .target(
            name: "NumberedModule", dependencies: [abi], path: "Modules/Numbered", swiftSettings: settings,
            linkerSettings: stripped),
        // Without the Swift runtime, which SwiftPM links to C libraries as well. "-nostartfiles" leaves out Swift's
        // start file, which needs the runtime.
        .target(
            name: "PlainModule", dependencies: [.product(name: "CPluginABI", package: "PluginHost")],
            path: "Modules/Plain", publicHeadersPath: ".",
            linkerSettings: stripped + [.unsafeFlags(["-static-stdlib", "-nostartfiles"])]),

        .target(name: "Figures", swiftSettings: settings),
        .testTarget(name: "FiguresTests", dependencies: ["Figures"], swiftSettings: settings),
        .target(name: "Work", dependencies: ["Figures", host, abi], swiftSettings: settings),
        .executableTarget(
            name: "SideBySide", dependencies: ["Figures", "Work", host, abi], swiftSettings: settings),
    ]
        + (isAlone
            ? []
            : [
                .executableTarget(
                    name: "Library", dependencies: ["Work", .product(name: "Benchmark", package: "benchmark")],
                    path: "Benchmarks/Library", swiftSettings: settings,
                    plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")])
            ])
)
