// swift-tools-version: 6.3
import PackageDescription

let package = Package(
    name: "Embed",
    dependencies: [.package(name: "PluginHost", path: "../..")],
    targets: [
        .executableTarget(name: "Embed", dependencies: [.product(name: "PluginHost", package: "PluginHost")])
    ]
)
