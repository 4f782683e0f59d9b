// swift-tools-version: 6.3
import PackageDescription

// A separate package, because it is built with its own sanitizer. See scripts/fuzz.

let package = Package(
    name: "Fuzzing",
    dependencies: [.package(name: "PluginHost", path: "../..")],
    targets: [
        .target(name: "CFuzzer"),
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                "CFuzzer", .product(name: "PluginHost", package: "PluginHost"),
                .product(name: "PluginABI", package: "PluginHost"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ],
            // GNU gold crashes when it reports an error about a symbol of a sanitizer.
            linkerSettings: [.unsafeFlags(["-use-ld=lld"])]),
    ]
)
