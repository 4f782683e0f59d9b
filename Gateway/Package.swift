// swift-tools-version: 6.3
import PackageDescription

// A package of its own, so that packages which depend on PluginHost do not get these dependencies.

let testSettings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]
let settings = testSettings + [.enableUpcomingFeature("MemberImportVisibility")]
let abi = Target.Dependency.product(name: "PluginABI", package: "PluginHost")
let host = Target.Dependency.product(name: "PluginHost", package: "PluginHost")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let lifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")

let package = Package(
    name: "Gateway",
    products: [
        .library(name: "PluginGateway", targets: ["PluginGateway"]),
        .library(name: "RemoteModules", targets: ["RemoteModules"]),
        .library(name: "PluginGatewayFleet", targets: ["PluginGatewayFleet"]),
        .executable(name: "pluginhost-gateway", targets: ["GatewayProgram"]),
    ],
    dependencies: [
        .package(name: "PluginHost", path: ".."),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.14.0"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.1.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    ],
    targets: [
        .target(name: "GatewayThreads", swiftSettings: settings),
        .target(
            name: "PluginGateway",
            dependencies: [
                "GatewayThreads", host, abi, hummingbird, logging, lifecycle,
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "X509", package: "swift-certificates"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
            ],
            resources: [.embedInCode("Page/Files")],
            swiftSettings: settings),
        .target(
            name: "RemoteModules",
            dependencies: [
                "GatewayThreads", host, abi, logging, lifecycle,
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: settings),
        .target(
            name: "PluginGatewayFleet",
            dependencies: [
                "PluginGateway", host, abi, logging, lifecycle,
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "GatewayProgram",
            dependencies: [
                "PluginGateway", "PluginGatewayFleet", "RemoteModules", host, abi, hummingbird, logging, lifecycle,
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "HummingbirdTLS", package: "hummingbird"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "PluginGatewayTests",
            dependencies: [
                "GatewayThreads", "PluginGateway", "GatewayProgram", host, abi, hummingbird, logging, lifecycle,
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
                .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "HummingbirdHTTP2", package: "hummingbird"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                // Not imported: built beside the tests, which load them.
                .product(name: "ModuleA", package: "PluginHost"),
                .product(name: "ModuleB", package: "PluginHost"),
                .product(name: "ModuleC", package: "PluginHost"),
            ],
            swiftSettings: testSettings),
        .testTarget(
            name: "RemoteModulesTests",
            dependencies: [
                "GatewayThreads", "RemoteModules", "PluginGateway", "GatewayProgram", host, abi, hummingbird, logging,
                lifecycle,
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "Tracing", package: "swift-distributed-tracing"),
            ],
            swiftSettings: testSettings),
        .testTarget(
            name: "FleetTests",
            dependencies: [
                "PluginGateway", "PluginGatewayFleet", "GatewayProgram", host, abi, hummingbird, logging, lifecycle,
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ],
            swiftSettings: testSettings),
    ]
)
