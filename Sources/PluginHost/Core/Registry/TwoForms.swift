/// A value in two forms, synchronous and asynchronous, each created when it is first needed.
struct TwoForms<Form> {
    private(set) var synchronous: Form?
    private(set) var asynchronous: Form?

    /// Returns one of the two forms, created by `make` if it does not exist.
    mutating func form(isAsync: Bool, _ make: () -> Form) -> Form {
        if let made = isAsync ? asynchronous : synchronous { return made }
        let made = make()
        if isAsync { asynchronous = made } else { synchronous = made }
        return made
    }
}

extension TwoForms: Sendable where Form: Sendable {}
