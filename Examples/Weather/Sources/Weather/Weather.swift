import PluginABI

/// A module in a package of its own. It depends on `PluginABI` only.
struct Weather: Module {
    static let manifest = Manifest("Weather", version: "1.0.0") {
        Target("Weather") {
            Action("forecast", .required("city", String.self), .optional("days", Int.self, default: 2)) { city, days in
                guard let skies = skies[city] else {
                    throw PluginError("unknownCity", "There is no forecast for “\(city)”. Ask for Oslo or Rome.")
                }
                return zip(1...max(1, days), skies).map { Forecast(day: $0, sky: $1) }
            }
            .remote().summary("The forecast of the sky for at most three days.")

            Action("welcome", .context(), .required("name", String.self)) { context, name in
                let greeting = try context.perform("B", "greet", ["name": .string(name)]).get(String.self)
                return greeting + " Take an umbrella."
            }
            .summary("Greets through B, a target of another module.")
        }
    }
}

@_cdecl("plugin_module_entry")
public func entry() -> UnsafePointer<plugin_module> { Weather.export() }

struct Forecast: ValueCodable {
    var day: Int
    var sky: String
}

let skies = ["Oslo": ["snow", "snow", "clouds"], "Rome": ["sun", "clouds", "sun"]]
