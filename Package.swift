// swift-tools-version: 6.3
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
    name: "PluginHost",
    products: [
        .library(name: "PluginABI", targets: ["PluginABI", "CPluginABI"]),
        .library(name: "CPluginABI", targets: ["CPluginABI"]),
        .library(name: "PluginHost", targets: ["PluginHost"]),
        .library(name: "PluginFacades", targets: ["PluginFacades"]),
        .library(name: "PluginTestKit", targets: ["PluginTestKit"]),
        .executable(name: "pluginhost", targets: ["PluginHostCLI"]),
        .executable(name: "pluginhost-worker", targets: ["CPluginWorkerProgram"]),
        .library(name: "ModuleA", type: .dynamic, targets: ["ModuleA"]),
        .library(name: "ModuleB", type: .dynamic, targets: ["ModuleB"]),
        .library(name: "ModuleC", type: .dynamic, targets: ["ModuleC"]),
        .library(name: "Visits", type: .dynamic, targets: ["Visits"]),
        .library(name: "Desk", type: .dynamic, targets: ["Desk"]),
        .library(name: "FixtureModule", type: .dynamic, targets: ["FixtureModule"]),
    ],
    targets: [
        .target(name: "CPluginABI"),
        .target(name: "PluginABI", dependencies: ["CPluginABI"], swiftSettings: settings),
        .target(name: "CPluginHost", dependencies: ["CPluginWorker"]),
        .target(name: "CPluginWire", dependencies: ["CPluginABI"]),
        .target(name: "CPluginWorker", dependencies: ["CPluginWire", "CPluginABI"]),
        .target(name: "PluginFile", dependencies: ["PluginABI", "CPluginABI"], swiftSettings: settings),
        .target(
            name: "PluginHost", dependencies: ["PluginFile", "PluginABI", "CPluginABI", "CPluginHost", "CPluginWire"],
            swiftSettings: settings),
        .target(
            name: "PluginFacades", dependencies: ["PluginHost", "PluginFile", "PluginABI"], swiftSettings: settings),
        .target(
            name: "PluginTestKit", dependencies: ["PluginHost", "PluginFile", "PluginABI"], swiftSettings: settings),

        // Programs, samples and tests, which scripts/install leaves out of the package that it installs.
        // Without a Swift runtime, which SwiftPM links to programs in C as well: modules bring their own.
        // "-nostartfiles" leaves out only the start file of Swift, which needs the runtime; clang links that of C.
        .executableTarget(
            name: "CPluginWorkerProgram", dependencies: ["CPluginWorker"],
            linkerSettings: [.unsafeFlags(["-static-stdlib", "-nostartfiles"])]),
        .executableTarget(
            name: "PluginHostCLI",
            dependencies: ["PluginFacades", "PluginHost", "PluginFile", "PluginABI", "CPluginHost"],
            swiftSettings: settings),

        .target(name: "ModuleA", dependencies: ["PluginABI"], path: "Plugins/ModuleA"),
        .target(name: "ModuleB", dependencies: ["PluginABI"], path: "Plugins/ModuleB"),
        .target(
            name: "ModuleC", dependencies: ["CPluginABI"], path: "Plugins/ModuleC", exclude: ["ModuleC.json"],
            publicHeadersPath: "."),

        .target(name: "Visits", dependencies: ["PluginABI"], path: "Tests/Fixtures/Visits"),
        .target(name: "Desk", dependencies: ["PluginABI"], path: "Tests/Fixtures/Desk"),
        .target(name: "FixtureModule", dependencies: ["PluginABI"], path: "Tests/Fixtures/FixtureModule"),
        .executableTarget(
            name: "LinkedProgram", dependencies: ["PluginHost", "PluginABI"], path: "Tests/Fixtures/LinkedProgram",
            swiftSettings: settings + [.define("PLUGIN_LINKED_IN")]),
        .executableTarget(name: "torture", path: "Tests/Torture", swiftSettings: settings),
        // A test target, so that it is built only with the tests.
        .testTarget(
            name: "TestSupport", dependencies: ["PluginHost", "PluginFile", "PluginABI"], path: "Tests/TestSupport",
            swiftSettings: settings),
        .testTarget(
            name: "PluginABITests", dependencies: ["TestSupport", "PluginFile", "PluginABI"], swiftSettings: settings),
        .testTarget(
            name: "PluginFileTests", dependencies: ["TestSupport", "PluginFile", "PluginABI"], swiftSettings: settings),
        .testTarget(
            name: "PluginHostTests", dependencies: ["TestSupport", "PluginFile", "PluginHost", "CPluginHost"],
            swiftSettings: settings),
        .testTarget(
            name: "PluginFacadesTests", dependencies: ["TestSupport", "PluginFacades", "PluginHost", "PluginABI"],
            swiftSettings: settings),
        .testTarget(
            name: "PluginHostCLITests",
            dependencies: ["TestSupport", "PluginHostCLI", "PluginHost", "PluginFile", "PluginABI"],
            swiftSettings: settings),
        .testTarget(
            name: "PluginTestKitTests", dependencies: ["TestSupport", "PluginTestKit", "PluginHost", "PluginABI"],
            swiftSettings: settings),
        .testTarget(
            name: "SampleModuleTests", dependencies: ["PluginTestKit", "PluginHost", "PluginABI"],
            swiftSettings: settings),
    ]
)
