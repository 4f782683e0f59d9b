// swift-tools-version: 6.3
import PackageDescription

// A package of its own, so that builds of the gateway do not build its benchmarks.

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")

let package = Package(
    name: "GatewayBenchmarks",
    products: [.library(name: "ShopModule", type: .dynamic, targets: ["ShopModule"])],
    dependencies: [
        .package(name: "Gateway", path: ".."),
        .package(name: "PluginHost", path: "../.."),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        .target(
            name: "ShopModule", dependencies: [.product(name: "PluginABI", package: "PluginHost")],
            path: "Modules/Shop", swiftSettings: settings),
        .executableTarget(
            name: "GatewayBench",
            dependencies: [
                hummingbird,
                .product(name: "PluginGateway", package: "Gateway"),
                .product(name: "PluginHost", package: "PluginHost"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings),
    ]
)
