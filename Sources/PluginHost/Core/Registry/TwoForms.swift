/// What is made when it is first needed, once for what is synchronous and once for what is not.
struct TwoForms<Form> {
    private(set) var synchronous: Form?
    private(set) var asynchronous: Form?

    /// One of the two, made by `make` if it is not there.
    mutating func form(isAsync: Bool, _ make: () -> Form) -> Form {
        if let made = isAsync ? asynchronous : synchronous { return made }
        let made = make()
        if isAsync { asynchronous = made } else { synchronous = made }
        return made
    }
}

extension TwoForms: Sendable where Form: Sendable {}
