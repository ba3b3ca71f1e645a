using System;

namespace Greenhouse
{
    /// <summary>Air in the house: degrees Celsius and per cent of humidity.</summary>
    public readonly record struct Climate(double Degrees, double Humidity)
    {
        public const string Legend = @"cold  below  8
mild  below 22
hot   above that";

        public bool IsHot => Degrees >= 22;

        public string Describe()
        {
            if (Degrees < 8)
                return "cold";

            return IsHot ? "hot" : "mild";
        }

        public static Climate Average(Climate left, Climate right)
        {
            return new Climate(
                Math.Round((left.Degrees + right.Degrees) / 2, 1),
                Math.Round((left.Humidity + right.Humidity) / 2, 1));
        }
    }
}
