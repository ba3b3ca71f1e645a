using Greenhouse;
using Greenhouse.Beds;
using System;

var bed = new Bed(room: 4);
foreach (var plant in Catalogue.All())
    bed.Add(plant);

bed.Add(new Möhre(22));

var air = Climate.Average(new Climate(19, 60), new Climate(24, 55));
Console.WriteLine($"{bed.Plants.Count} plants, {air.Describe()} air");
Console.WriteLine($"{Watering.LitresFor(bed, Season.Summer):0.00} l today");
