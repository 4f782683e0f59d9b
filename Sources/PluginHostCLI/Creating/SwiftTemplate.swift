/// The files of a new module in Swift: a package with a test.
enum SwiftTemplate {
    /// - Parameter folder: The absolute path of the package.
    static func files(
        _ name: ModuleName, _ dependency: PackageDependency, in folder: String
    ) -> [(path: String, text: String)] {
        [
            ("Package.swift", package(name, dependency, folder)),
            ("exports.map", "{ global: plugin_module_entry; local: *; };\n"),
            ("README.md", readme(name)),
            (".gitignore", ".build/\n"),
            ("Sources/\(name.text)/\(name.text).swift", source(name)),
            ("Tests/\(name.text)Tests/\(name.text)Tests.swift", TestTemplate.source(name)),
        ]
    }

    private static func package(_ name: ModuleName, _ dependency: PackageDependency, _ folder: String) -> String {
        """
        // swift-tools-version: 6.3
        import PackageDescription

        let package = Package(
            name: "\(name.text)",
            products: [.library(name: "\(name.text)", type: .dynamic, targets: ["\(name.text)"])],
            dependencies: [\(dependency.declaration(in: folder))],
            targets: [
                .target(
                    name: "\(name.text)",
                    dependencies: [.product(name: "PluginABI", package: "\(dependency.identity)")]),
                .testTarget(
                    name: "\(name.text)Tests",
                    dependencies: [.product(name: "\(TestTemplate.library)", package: "\(dependency.identity)")]),
            ]
        )

        """
    }

    private static func readme(_ name: ModuleName) -> String {
        let library = ".build/release/lib\(name.text).so"
        return ReadmeTemplate.text(
            name,
            [
                ("swift test", "builds it, and tests it in a host"),
                (
                    """
                    swift build -c release -Xlinker -s -Xlinker --version-script=exports.map \\
                        -Xswiftc -Xfrontend -Xswiftc -function-sections \\
                        -Xswiftc -Xfrontend -Xswiftc -internalize-at-link
                    """,
                    "builds it for installation"
                ),
                ("pluginhost check \(library)", "checks it before you ship it"),
                ("pluginhost seal \(library)", "makes its manifest readable without running it"),
                ("install -D -m 755 -t plugins \(library)", "installs it in a plugins folder"),
                ("pluginhost call \(name.text) greet name=Ada", "calls it"),
            ])
    }

    private static func source(_ name: ModuleName) -> String {
        """
        import PluginABI

        /// Greets people.
        struct \(name.text): Module {
            static let manifest = Manifest("\(name.text)", version: "0.1.0") {
                Target("\(name.text)") {
                    Action("greet", .required("name", String.self)) { name in "Hello, \\(name)!" }
                        .remote().summary("Greets somebody by name.")
                }

                Route("app://\(name.host)/greet/:name", to: "\(name.text)/greet")
                    .named("\(name.text).greet").summary("A greeting.")
            }
        }

        @_cdecl("plugin_module_entry")
        public func entry() -> UnsafePointer<plugin_module> { \(name.text).export() }

        """
    }
}
