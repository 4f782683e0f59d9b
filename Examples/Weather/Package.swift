// swift-tools-version: 6.3
import PackageDescription

let package = Package(
    name: "Weather",
    products: [.library(name: "Weather", type: .dynamic, targets: ["Weather"])],
    dependencies: [.package(name: "PluginHost", path: "../..")],
    targets: [
        .target(name: "Weather", dependencies: [.product(name: "PluginABI", package: "PluginHost")])
    ]
)
