/** Percent-encodings that stand for no text. */
export const badEncodings = ['%', '%zz', '%f', '%ff', '%c3%28', '%ED%A0%80', '%F5%80%80%80', '%%', '%u0041']
