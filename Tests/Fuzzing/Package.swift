// swift-tools-version: 6.3
import PackageDescription

// A package of its own: what is in it is built with a sanitizer of its own. See scripts/fuzz.

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
            // GNU gold crashes where it has a symbol of a sanitizer to complain about.
            linkerSettings: [.unsafeFlags(["-use-ld=lld"])]),
    ]
)
