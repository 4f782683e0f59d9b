// swift-tools-version: 6.3
import PackageDescription

let abi = Target.Dependency.product(name: "PluginABI", package: "PluginHost")

// Sources/LinkedA, LinkedB and LinkedC are links to the samples in Plugins: the same sources, compiled for linking.
let package = Package(
    name: "OneBinary",
    dependencies: [.package(name: "PluginHost", path: "../..")],
    targets: [
        .target(name: "LinkedA", dependencies: [abi], swiftSettings: [.define("PLUGIN_LINKED_IN")]),
        .target(name: "LinkedB", dependencies: [abi], swiftSettings: [.define("PLUGIN_LINKED_IN")]),
        .target(
            name: "LinkedC", dependencies: [abi], exclude: ["ModuleC.json"], publicHeadersPath: ".",
            cSettings: [.define("PLUGIN_LINKED_IN")]),
        .executableTarget(
            name: "OneBinary",
            dependencies: ["LinkedA", "LinkedB", "LinkedC", .product(name: "PluginHost", package: "PluginHost")]),
    ]
)
