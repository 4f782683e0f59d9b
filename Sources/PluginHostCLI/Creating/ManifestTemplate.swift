/// The manifest of a new module in a language that embeds it from a JSON file.
enum ManifestTemplate {
    static func text(_ name: ModuleName) -> String {
        """
        {
            "name": "\(name.text)",
            "version": "0.1.0",
            "targets": [
                {
                    "name": "\(name.text)",
                    "actions": [
                        {
                            "name": "greet",
                            "summary": "Greets somebody by name.",
                            "remote": true,
                            "result": "string",
                            "parameters": [{"name": "name", "type": "string", "required": true}]
                        }
                    ]
                }
            ],
            "routes": [
                {
                    "pattern": "app://\(name.host)/greet/:name",
                    "action": "\(name.text)/greet",
                    "name": "\(name.text).greet",
                    "summary": "A greeting."
                }
            ]
        }

        """
    }
}
