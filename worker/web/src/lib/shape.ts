// Small descriptions of JSON values: TypeScript takes its types from them, the page checks
// what it receives against them, and the build writes them out for the server's tests.

export type Shape =
    | { readonly kind: "string" | "number" | "boolean" | "any" }
    | { readonly kind: "literal"; readonly values: readonly string[] }
    | { readonly kind: "null-or"; readonly of: Shape }
    | { readonly kind: "optional"; readonly of: Shape }
    | { readonly kind: "list"; readonly of: Shape }
    | { readonly kind: "map"; readonly of: Shape }
    | ObjectShape
    | { readonly kind: "variants"; readonly of: readonly ObjectShape[] };
interface ObjectShape { readonly kind: "object"; readonly fields: { readonly [name: string]: Shape } }

type Optional = { readonly kind: "optional" };
type OptionalKeys<F> = { [K in keyof F]: F[K] extends Optional ? K : never }[keyof F];
type FieldsOf<F> = {
    [K in Exclude<keyof F, OptionalKeys<F>>]: TypeOf<F[K]>;
} & { [K in OptionalKeys<F>]?: TypeOf<F[K]> | undefined };

/** The TypeScript type that a shape describes. */
export type TypeOf<S> =
    S extends { kind: "string" } ? string
    : S extends { kind: "number" } ? number
    : S extends { kind: "boolean" } ? boolean
    : S extends { kind: "any" } ? unknown
    : S extends { kind: "literal"; values: readonly (infer V)[] } ? V
    : S extends { kind: "null-or"; of: infer O } ? TypeOf<O> | null
    : S extends { kind: "optional"; of: infer O } ? TypeOf<O>
    : S extends { kind: "list"; of: infer O } ? TypeOf<O>[]
    : S extends { kind: "map"; of: infer O } ? { [name: string]: TypeOf<O> }
    : S extends { kind: "object"; fields: infer F } ? FieldsOf<F>
    : S extends { kind: "variants"; of: readonly (infer O)[] } ? (O extends unknown ? TypeOf<O> : never)
    : never;

export const string = { kind: "string" } as const;
export const number = { kind: "number" } as const;
export const boolean = { kind: "boolean" } as const;
export const any = { kind: "any" } as const;
export const literal = <const V extends readonly string[]>(...values: V) =>
    ({ kind: "literal", values }) as const;
export const nullOr = <const S extends Shape>(of: S) => ({ kind: "null-or", of }) as const;
export const optional = <const S extends Shape>(of: S) => ({ kind: "optional", of }) as const;
export const list = <const S extends Shape>(of: S) => ({ kind: "list", of }) as const;
export const map = <const S extends Shape>(of: S) => ({ kind: "map", of }) as const;
export const object = <const F extends { readonly [name: string]: Shape }>(fields: F) =>
    ({ kind: "object", fields }) as const;

/** Objects that their `type` tells apart; one whose `type` is any string takes the others. */
export const variants = <const V extends readonly ObjectShape[]>(...of: V) => ({ kind: "variants", of }) as const;

/** Where `value` departs from `shape` (a path such as `runs[3].id`), or null when it fits. */
export function misfit(shape: Shape, value: unknown, path = "answer"): string | null {
    switch (shape.kind) {
    case "any": return null;
    case "string": case "number": case "boolean": return typeof value === shape.kind ? null : path;
    case "literal": return shape.values.includes(value as string) ? null : path;
    case "null-or": return value === null ? null : misfit(shape.of, value, path);
    case "optional": return value === undefined ? null : misfit(shape.of, value, path);
    case "list": return Array.isArray(value) ? misfitIn(shape.of, value.entries(), path) : path;
    case "map": return isRecord(value) ? misfitIn(shape.of, Object.entries(value), path) : path;
    case "object": return isRecord(value) ? misfitField(shape.fields, value, path) : path;
    case "variants": {
        const one = variantOf(shape.of, value);
        return one ? misfit(one, value, path) : `${path}.type`;
    }
    }
}

/** The variant whose `type` this value has. */
function variantOf(of: readonly ObjectShape[], value: unknown): ObjectShape | undefined {
    if (!isRecord(value)) return undefined;
    return of.find(({ fields: { type } }) => type && misfit(type, value.type) === null);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

function misfitIn(shape: Shape, items: Iterable<[number | string, unknown]>, path: string) {
    for (const [key, item] of items) {
        const wrong = misfit(shape, item, `${path}[${key}]`);
        if (wrong) return wrong;
    }
    return null;
}

function misfitField(fields: { readonly [name: string]: Shape }, value: Record<string, unknown>, path: string) {
    for (const [name, shape] of Object.entries(fields)) {
        const wrong = misfit(shape, value[name], `${path}.${name}`);
        if (wrong) return wrong;
    }
    return null;
}
