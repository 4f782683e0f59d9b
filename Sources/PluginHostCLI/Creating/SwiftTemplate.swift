/// The source of a new module in Swift.
enum SwiftTemplate {
    static func source(_ name: ModuleName) -> String {
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
