import PluginABI

extension RouteMethod {
    /// Returns the method with which a request opens a URL.
    ///
    /// - Throws: `invalidValue` if the request states a number that no method has.
    static func asked(_ number: UInt32) throws(PluginError) -> RouteMethod {
        if number == 0 { return .get }
        guard let method = RouteMethod(number: number) else {
            throw PluginError(
                .invalidValue,
                "The request for a URL states the method \(number). The methods are numbered from 1 to "
                    + "\(RouteMethod.allCases.count), see plugin_abi/routes.h.")
        }
        return method
    }
}
