// swift-tools-version: 6.1
import PackageDescription

// The peer of isolated calls: gRPC between two processes, as go-plugin and others do it.
let package = Package(
    name: "grpc",
    platforms: [.macOS(.v15)],  // Required by gRPC.
    dependencies: [
        .package(url: "https://github.com/grpc/grpc-swift-2", exact: "2.4.3"),
        .package(url: "https://github.com/grpc/grpc-swift-nio-transport", exact: "2.9.2"),
    ],
    targets: [
        .executableTarget(
            name: "Echo",
            dependencies: [
                .product(name: "GRPCCore", package: "grpc-swift-2"),
                .product(name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport"),
            ])
    ]
)
